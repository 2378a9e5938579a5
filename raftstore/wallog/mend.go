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

// Mend verifies a log and repairs its last segment after a crash where raft-wal (v0.4.2) does not. Callers must run it
// before the library opens the log. It does not change a damaged log. loose tells that appends were not synced. The
// failure of a machine may then have made the last batch of the last segment incomplete.
//
// Mend neither reads nor writes an acknowledged mark.
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

// mend repairs the last segment of a verified log after a crash. It returns the mark of that segment and of the end
// of its last batch.
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
		err = nil // the metadata name a file that does not exist yet; the library creates it
	}
	m := v.mark
	m.segment, m.end = tail.ID, uint64(end)
	return m, err
}

// wipeTorn zeroes the bytes after the last batch of a segment. A process that is killed during a write leaves the
// first pages of the write, and a loss of power leaves any of its pages.
//
// The library begins its next append at the first of these bytes. At the next opening it would decode the leftover
// bytes after that append as frames, and trust an index without a commit. The segment would then count as full with an
// invalid index, and the node could never read its log again.
//
// wipeTorn also syncs the last batch. A killed process may have written it without a sync, and from now on it counts
// as acknowledged.
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

// finishRotation completes a segment rotation that a crash interrupted. The library seals a full segment with its
// last append, and adds the next segment to the metadata later, in the background. A process that ends in between,
// even in an orderly way, leaves a sealed tail. Such a log opens and then refuses every append.
//
// finishRotation writes the metadata that the rotation would have written. The library creates the file of the new
// segment itself.
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
