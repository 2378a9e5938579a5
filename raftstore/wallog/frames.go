package wallog

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math"

	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
)

// A segment is a header and frames, each with a head that says its type and length and
// padded to a multiple of that head; a commit has the checksum of all since the commit
// before instead of a length (raft-wal v0.4.2, segment/format.go).
const (
	fileHeadBytes  = 32
	frameHeadBytes = 8
)

// wipeBytes is how much is looked at in one go.
const wipeBytes = 64 << 10

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// commit is one that ends at end and is for all since begin.
type commit struct {
	begin, end int64
	crc        uint32
}

// endOfCommits is where the last whole commit of a segment ends, 0 when there is none:
// where the library appends next. Like the library it takes a commit for whole when
// entries follow, for these were written after it was on disk.
func endOfCommits(f io.ReaderAt) (int64, error) {
	var last, before commit
	followed := false
	err := eachFrame(f, func(kind uint8, value uint32, end int64) {
		switch kind {
		case segment.FrameEntry:
			followed = true
		case segment.FrameCommit:
			before, last, followed = last, commit{begin: last.end, end: end, crc: value}, false
		}
	})
	if err != nil || last.end == 0 || followed {
		return last.end, err
	}
	if whole, err := last.whole(f); whole || err != nil {
		return last.end, err
	}
	return before.end, nil
}

// eachFrame goes over the frames up to zeros, what is no frame, or the end of the file.
// value is a frame's length or checksum, end where the next one begins.
func eachFrame(f io.ReaderAt, visit func(kind uint8, value uint32, end int64)) error {
	var head [frameHeadBytes]byte
	for at := int64(fileHeadBytes); ; {
		if n, err := f.ReadAt(head[:], at); n < len(head) {
			if err == io.EOF {
				return nil
			}
			return err
		}
		kind, value := head[0], binary.LittleEndian.Uint32(head[4:])
		at += frameHeadBytes
		switch kind {
		case segment.FrameEntry, segment.FrameIndex:
			at += (int64(value) + frameHeadBytes - 1) / frameHeadBytes * frameHeadBytes
		case segment.FrameCommit:
		default:
			return nil
		}
		visit(kind, value, at)
	}
}

// whole says whether all that a commit is for is there.
func (c commit) whole(f io.ReaderAt) (bool, error) {
	sum := crc32.New(castagnoli)
	_, err := io.Copy(sum, io.NewSectionReader(f, c.begin, c.end-frameHeadBytes-c.begin))
	return sum.Sum32() == c.crc, err
}

// wipe writes zeros over what else there is from an offset to the end of a file.
func wipe(f types.WritableFile, from int64) error {
	rest := io.NewSectionReader(f, from, math.MaxInt64-from)
	buf, zeros, wiped := make([]byte, wipeBytes), make([]byte, wipeBytes), false
	for at := from; ; {
		n, err := io.ReadFull(rest, buf)
		if some := lastNonzero(buf[:n]); some > 0 {
			if _, err := f.WriteAt(zeros[:some], at); err != nil {
				return err
			}
			wiped = true
		}
		at += int64(n)
		switch {
		case err == nil:
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			if wiped {
				return f.Sync()
			}
			return nil
		default:
			return err
		}
	}
}

// lastNonzero is how many bytes there are up to the last that is not zero.
func lastNonzero(b []byte) int {
	for len(b) > 0 && b[len(b)-1] == 0 {
		b = b[:len(b)-1]
	}
	return len(b)
}
