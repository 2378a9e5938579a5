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

// Mend puts right what a crash left of the last segment, where raft-wal (v0.4.2) does not.
// It is to be called before the library opens the log: first what was not appended
// completely goes, then a rotation that was interrupted is finished.
func Mend(dir string, files types.VFS, segments types.SegmentFiler, meta types.MetaStore) error {
	state, err := meta.Load(dir)
	if err != nil || len(state.Segments) == 0 {
		return err
	}
	tail := state.Segments[len(state.Segments)-1]
	if !tail.SealTime.IsZero() {
		return nil
	}
	err = wipeTorn(dir, files, tail)
	if err == nil {
		err = finishRotation(state, segments, meta)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it was noted, but not made: the library knows this case
	}
	return err
}

// wipeTorn clears what lies behind the last commit of a segment. A process that is killed
// in a write leaves its first pages, and power that fails any of them. The library begins
// its next append there, but takes what it finds behind that append for frames at the next
// opening, and believes in an index without a commit: the segment then counts as full, with
// an index that leads to nothing, and the node can never read its log again.
func wipeTorn(dir string, files types.VFS, tail types.SegmentInfo) error {
	f, err := files.OpenWriter(dir, segment.FileName(tail))
	if err != nil {
		return err
	}
	end, err := endOfCommits(f)
	if err == nil {
		err = wipe(f, end)
	}
	if err = errors.Join(err, f.Close()); err != nil {
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
