package wallog

import (
	"errors"
	"io/fs"
	"slices"
	"time"

	"github.com/hashicorp/raft-wal/types"
)

// FinishRotation completes a change of segments that a crash interrupted. raft-wal
// (v0.4.2) seals a full segment with its last append and notes the next one in the
// metadata later, in the background. A process that ends in between, even in an
// orderly way, leaves a sealed tail: the log opens, and refuses every append for
// ever. The metadata written here are those the rotation would have written; the
// library makes the file of the new segment itself.
func FinishRotation(dir string, segments types.SegmentFiler, meta types.MetaStore) error {
	state, err := meta.Load(dir)
	if err != nil || len(state.Segments) == 0 {
		return err
	}
	state.Segments = slices.Clone(state.Segments)
	tail := &state.Segments[len(state.Segments)-1]
	if !tail.SealTime.IsZero() {
		return nil
	}
	w, err := segments.RecoverTail(*tail)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it was noted, but not made: the library knows this case
	} else if err != nil {
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
