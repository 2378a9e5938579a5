package wallog

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math"

	"github.com/hashicorp/raft-wal/segment"
)

// A segment is a file header and frames. A frame has a header with its type and its length, and is padded to a
// multiple of that header. A commit frame ends a batch of entries. Instead of a length it has the CRC32C of all bytes
// since the previous commit (raft-wal v0.4.2, segment/format.go).
const (
	fileHeadBytes  = 32
	frameHeadBytes = 8
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// scan describes the batches of a segment, up to the first incomplete batch.
type scan struct {
	end     int      // end of the last batch with a valid checksum; 0: none
	offsets []uint32 // of the entries up to end
	batches int      // up to end
	index   int      // where the array of the sealing index begins; 0: not sealed
	at      int      // the first byte after end that is not valid
	why     string   // the reason why it is not valid
	summed  bool     // at is a commit frame with an invalid checksum
}

// frame is the header of a frame.
type frame struct {
	kind  uint8
	value uint32 // length, or checksum of a commit
}

// frameAt decodes a frame header. It returns false if the type is unknown or b does not contain the whole header.
func frameAt(b []byte, at int) (frame, bool) {
	if at < 0 || at+frameHeadBytes > len(b) || b[at+1]|b[at+2]|b[at+3] != 0 {
		return frame{}, false
	}
	f := frame{kind: b[at], value: binary.LittleEndian.Uint32(b[at+4:])}
	switch f.kind {
	case segment.FrameEntry, segment.FrameIndex:
		return f, f.value <= segment.MaxEntrySize
	default:
		return f, f.kind == segment.FrameCommit
	}
}

// size returns the length of the frame with its header and padding.
func (f frame) size() int {
	if f.kind == segment.FrameCommit {
		return frameHeadBytes
	}
	return frameHeadBytes + (int(f.value)+frameHeadBytes-1)/frameHeadBytes*frameHeadBytes
}

// scanSegment verifies every batch of a segment whose first entry is base: its checksum, its frames, and that its
// entries are consecutive.
func scanSegment(b []byte, base uint64) scan {
	var s scan
	var offsets []uint32
	index, at := 0, fileHeadBytes
	stop := func(why string) scan {
		s.at, s.why = at, why
		return s
	}
	for {
		f, ok := frameAt(b, at)
		if !ok {
			return stop("the frame header is invalid")
		}
		next := at + f.size()
		if want := base + uint64(len(offsets)); f.kind == segment.FrameEntry {
			offsets = append(offsets, uint32(at))
			at += frameHeadBytes
			if got, _ := binary.Uvarint(b[at:min(next, len(b))]); got != want {
				return stop(fmt.Sprintf("frame holds entry %d instead of %d", got, want))
			}
		}
		if next > len(b) {
			at = len(b)
			return stop("frame is longer than the file")
		}
		switch f.kind {
		case segment.FrameIndex:
			index = at + frameHeadBytes
		case segment.FrameCommit:
			if crc32.Checksum(b[s.end:at], castagnoli) != f.value {
				s.summed = true
				return stop("checksum mismatch")
			}
			s.end, s.offsets, s.index = next, offsets, index
			s.batches++
		}
		at = next
	}
}

// readAll reads a file into buf, and extends buf if the file is longer.
func readAll(f io.ReaderAt, buf []byte) ([]byte, error) {
	n, err := f.ReadAt(buf, 0)
	if n < len(buf) {
		if err == io.EOF {
			err = nil
		}
		return buf[:n], err
	}
	more, err := io.ReadAll(io.NewSectionReader(f, int64(n), math.MaxInt64-int64(n)))
	return append(buf, more...), err
}

var zeros [4096]byte

// lastNonzero returns the length of b without its trailing zeros.
func lastNonzero(b []byte) int {
	for len(b) >= len(zeros) && bytes.Equal(b[len(b)-len(zeros):], zeros[:]) {
		b = b[:len(b)-len(zeros)]
	}
	for len(b) > 0 && b[len(b)-1] == 0 {
		b = b[:len(b)-1]
	}
	return len(b)
}
