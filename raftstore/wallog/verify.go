package wallog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
)

// verifier verifies a whole log before any of it is changed. It tells a torn write, which was never acknowledged,
// from damage to entries that may have been acknowledged.
type verifier struct {
	dir   string
	files types.VFS
	state types.PersistentState
	mark  mark
	// loose tells that the operating system decided when appends were written, so a failed machine may have lost any
	// part of them. An incomplete batch of the last segment then ends the log.
	loose bool
	buf   []byte
	rest  int // length of the non-zero bytes after the last whole batch of the last segment
}

// verify checks every segment. If the last segment is not sealed, verify returns the end of its last complete batch.
func (v *verifier) verify() (tailEnd int, err error) {
	if err := v.segments(); err != nil {
		return 0, err
	}
	for i, info := range v.state.Segments {
		b, err := v.read(info)
		if err != nil {
			return 0, err
		}
		s := scanSegment(b, info.BaseIndex)
		if s.end < v.mark.acknowledged(info.ID) {
			return 0, v.corrupt(info, s, s.why+", before the end of what was acknowledged")
		}
		if i < len(v.state.Segments)-1 || !info.SealTime.IsZero() {
			err = v.sealed(info, b, s)
		} else {
			tailEnd, err = s.end, v.tail(info, b, s)
		}
		if err != nil {
			return 0, err
		}
	}
	return tailEnd, nil
}

// segments checks that the metadata are consistent with themselves, the mark and the files.
func (v *verifier) segments() error {
	all := v.state.Segments
	bad := func(format string, args ...any) error {
		return &CorruptError{File: "wal-meta.db", Reason: fmt.Sprintf(format, args...)}
	}
	for i, s := range all {
		switch {
		case s.ID >= v.state.NextSegmentID:
			return bad("it lists segment %d, which it has not allocated", s.ID)
		case i < len(all)-1 && s.SealTime.IsZero():
			return bad("segment %d is neither sealed nor the last", s.ID)
		case i > 0 && s.BaseIndex != all[i-1].MaxIndex+1:
			return bad("segment %d begins with entry %d, but the segment before ends with entry %d", s.ID, s.BaseIndex,
				all[i-1].MaxIndex)
		}
	}
	if v.mark.end > 0 && v.mark.segment >= v.state.NextSegmentID {
		return bad("entries were acknowledged in segment %d, which it does not list", v.mark.segment)
	}
	if v.state.NextSegmentID > 0 || len(all) > 0 {
		return nil
	}
	names, err := v.files.ListDir(v.dir)
	for _, name := range names {
		if strings.HasSuffix(name, ".wal") {
			return bad("it lists no segment, but there is %s", name)
		}
	}
	return err
}

// read returns the bytes of a segment. The file of the last segment may be missing before
// its first append.
func (v *verifier) read(info types.SegmentInfo) ([]byte, error) {
	name := segment.FileName(info)
	f, err := v.files.OpenReader(v.dir, name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && info.SealTime.IsZero() && v.mark.acknowledged(info.ID) == 0:
		return nil, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, &CorruptError{File: name, Entry: info.MinIndex, Reason: "the file is missing"}
	case err != nil:
		return nil, err
	}
	v.buf = slices.Grow(v.buf[:0], int(info.SizeLimit))[:info.SizeLimit]
	v.buf, err = readAll(f, v.buf)
	return v.buf, errors.Join(err, f.Close())
}

// sealed checks a segment that takes no more entries. All its entries and its index must be complete.
func (v *verifier) sealed(info types.SegmentInfo, b []byte, s scan) error {
	switch {
	case info.BaseIndex+uint64(len(s.offsets)) <= info.MaxIndex:
		return v.corrupt(info, s, s.why+", in a segment that was completed")
	case s.index == 0 || uint64(s.index) != info.IndexStart:
		return v.corrupt(info, s, s.why+", before the index")
	}
	return v.content(info, b, s)
}

// tail checks the segment that takes appends.
func (v *verifier) tail(info types.SegmentInfo, b []byte, s scan) error {
	v.rest = lastNonzero(b[s.end:])
	switch {
	case v.rest == 0, v.mark.isLast(info.ID, s.end), v.loose && !v.mark.thisBoot:
	case v.mark.damaged:
		return v.corrupt(info, s, s.why+", and the record of what was acknowledged is damaged or missing")
	default:
		if why := torn(b, s, info.BaseIndex+uint64(len(s.offsets))); why != "" {
			return v.corrupt(info, s, why)
		}
	}
	if s.end == 0 {
		return nil
	}
	return v.content(info, b, s)
}

// content checks the file header and the index of entries.
func (v *verifier) content(info types.SegmentInfo, b []byte, s scan) error {
	head := func(at int) uint64 { return binary.LittleEndian.Uint64(b[at:]) }
	if head(8) != info.BaseIndex || head(16) != info.ID || head(24) != info.Codec {
		return &CorruptError{File: segment.FileName(info), Entry: info.MinIndex,
			Reason: "the file header belongs to another segment"}
	}
	for i, at := range s.offsets {
		if s.index > 0 && binary.LittleEndian.Uint32(b[s.index+4*i:]) != at {
			return &CorruptError{File: segment.FileName(info), Offset: int64(s.index),
				Entry:  info.BaseIndex + uint64(i),
				Reason: "the index does not match the entries"}
		}
	}
	return nil
}

func (v *verifier) corrupt(info types.SegmentInfo, s scan, why string) error {
	return &CorruptError{
		File: segment.FileName(info), Offset: int64(s.at), Entry: max(info.BaseIndex+uint64(len(s.offsets)),
			info.MinIndex), Reason: why,
	}
}
