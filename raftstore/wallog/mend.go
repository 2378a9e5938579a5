package wallog

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
)

// Mend verifies a log, and repairs what a crash left of its last segment where raft-wal
// (v0.4.2) does not. Call it before the library opens the log. It changes nothing in a
// damaged log. loose says that appends were never synced: a batch of the last segment that
// is not whole may then have been lost with the machine.
func Mend(dir string, files types.VFS, segments types.SegmentFiler, meta types.MetaStore, loose bool) error {
	state, err := meta.Load(dir)
	if err != nil {
		return err
	}
	v := verifier{dir: dir, files: files, state: state, loose: loose}
	end, err := v.verify()
	if err == nil {
		_, err = mend(&v, end, segments, meta)
	}
	return err
}

// mend repairs what a crash left of a verified log. It returns the mark of the last segment
// and of the end of its last batch.
func mend(v *verifier, end int, segments types.SegmentFiler, meta types.MetaStore) (mark, error) {
	all := v.state.Segments
	if len(all) == 0 || !all[len(all)-1].SealTime.IsZero() {
		return v.mark, nil
	}
	tail := all[len(all)-1]
	err := wipeTorn(v.dir, v.files, tail, int64(end), v.rest)
	if err == nil {
		err = finishRotation(v.state, segments, meta)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // the metadata name a file that was not made yet: the library makes it
	}
	m := v.mark
	m.segment, m.end = tail.ID, uint64(end)
	return m, err
}

// wipeTorn clears what lies behind the last batch of a segment. A process that is killed
// in a write leaves its first pages, and power that fails any of them. The library begins
// its next append there, but takes what it finds behind that append for frames at the next
// opening, and believes in an index without a commit: the segment then counts as full, with
// an index that leads to nothing, and the node can never read its log again. wipeTorn also
// syncs the last batch: a killed process may have written it without a sync, and from now on
// it counts as acknowledged.
func wipeTorn(dir string, files types.VFS, tail types.SegmentInfo, end int64, rest int) error {
	f, err := files.OpenWriter(dir, segment.FileName(tail))
	if err != nil {
		return err
	}
	_, err = f.WriteAt(make([]byte, rest), end)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("%s: %w", segment.FileName(tail), err)
	}
	return nil
}

// finishRotation completes a change of segments that a crash interrupted. The library
// seals a full segment with its last append and notes the next one in the
// metadata later, in the background. A process that ends in between, even in an
// orderly way, leaves a sealed tail: the log opens, and refuses every append for
// ever. The metadata written here are those the rotation would have written; the
// library makes the file of the new segment itself.
func finishRotation(state types.PersistentState, segments types.SegmentFiler, meta types.MetaStore) error {
	state.Segments = slices.Clone(state.Segments)
	tail := &state.Segments[len(state.Segments)-1]
	w, err := segments.RecoverTail(*tail)
	if err != nil {
		return err
	}
	sealed, indexStart, err := w.Sealed()
	last := w.LastIndex()
	if err = errors.Join(err, w.Close()); err != nil || !sealed {
		return err
	}
	next := types.SegmentInfo{
		ID: state.NextSegmentID, BaseIndex: last + 1, MinIndex: last + 1,
		Codec: tail.Codec, SizeLimit: tail.SizeLimit, CreateTime: time.Now(),
	}
	tail.SealTime, tail.MaxIndex, tail.IndexStart = time.Now(), last, indexStart
	state.Segments = append(state.Segments, next)
	state.NextSegmentID++
	return meta.CommitState(state)
}
