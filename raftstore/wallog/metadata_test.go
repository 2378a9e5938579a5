package wallog_test

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"

	wal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/metadb"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/raftstore/wallog"
)

func (m image) segments() (n int) {
	for name := range m {
		if filepath.Ext(name) == ".wal" {
			n++
		}
	}
	return n
}

// steps creates a log of large entries, and takes an image before each of them and after the last. Its third segment
// is the last one.
func steps(t *testing.T) (images []image, k *kept) {
	t.Helper()
	_, k = logImage(t, func(t testing.TB, w *wallog.Log, k *kept) {
		for more := true; more; {
			m := readImage(t, w.Dir())
			images, more = append(images, m), m.segments() < 3
			k.store(t, w, 1, 900)
		}
		images = append(images, readImage(t, w.Dir()))
	})
	return images, k
}

// rotations returns the last entry of each segment but the last of a log made by steps.
func rotations(t *testing.T, m image) (last []uint64) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "log")
	m.write(t, dir)
	require.NoError(t, wallog.ChangeState(dir, func(state *types.PersistentState) {
		for _, s := range state.Segments[:len(state.Segments)-1] {
			last = append(last, s.MaxIndex)
		}
	}))
	return last
}

// TestAnInterruptedRotation checks that a log opens and takes the next entry although the process ended between two
// steps. The last append had filled a segment, and the metadata of the next was not written.
func TestAnInterruptedRotation(t *testing.T) {
	images, k := steps(t)
	full := rotations(t, images[len(images)-1])[0]
	before, after := images[full-1], images[full]
	m := image{
		metadb.FileName:      before[metadb.FileName],
		wallog.MarkName:      after[wallog.MarkName],
		segmentName(1, 0):    after[segmentName(1, 0)],
		"not of the log.txt": []byte("kept"),
	}
	w, err := reopened(t, m, true, "boot")
	require.NoError(t, err)
	defer w.Close()
	then := k.until(full)
	require.NoError(t, then.holds(w))
	then.store(t, w, 1, 50)
	require.NoError(t, then.holds(w))
}

// memoryMeta keeps the list of segments in memory.
type memoryMeta struct {
	types.MetaStore
	state types.PersistentState
	err   error
}

func (m *memoryMeta) Load(string) (types.PersistentState, error) { return m.state, m.err }

func (m *memoryMeta) CommitState(state types.PersistentState) error {
	m.state = state
	return nil
}

// TestMend checks that Mend completes a rotation, and does not change a log that it refuses.
func TestMend(t *testing.T) {
	images, _ := steps(t)
	full := rotations(t, images[len(images)-1])[0]
	m := image{metadb.FileName: images[full-1][metadb.FileName], segmentName(1, 0): images[full][segmentName(1, 0)]}
	dir, meta := memoryDir(t), &memoryMeta{}
	m.write(t, dir)
	require.NoError(t, wallog.ChangeState(dir, func(s *types.PersistentState) { meta.state = *s }))
	mend := func() error { return wallog.Mend(dir, fs.New(), segment.NewFiler(dir, fs.New()), meta, false) }
	meta.err = errDisk
	require.ErrorIs(t, mend(), errDisk)
	meta.err = nil
	whole := m[segmentName(1, 0)]
	m[segmentName(1, 0)] = slices.Clone(whole)
	m[segmentName(1, 0)][100] ^= 1
	m.write(t, dir)
	require.ErrorIs(t, mend(), wal.ErrCorrupt)
	require.Equal(t, m, readImage(t, dir))
	require.Len(t, meta.state.Segments, 1)
	m[segmentName(1, 0)] = whole
	m.write(t, dir)
	require.NoError(t, mend())
	require.Len(t, meta.state.Segments, 2)
	require.Equal(t, full, meta.state.Segments[0].MaxIndex)
	require.NoError(t, mend(), "Mend must succeed before the file of the new segment exists")
}

// TestMendOfAShortSegment checks that Mend accepts a last segment that a crash at its creation left short, and that took
// several batches since.
func TestMendOfAShortSegment(t *testing.T) {
	m, k := logImage(t, logsToDamage["one segment"])
	require.Greater(t, k.last, uint64(1))
	name := segmentName(1, 0)
	m[name] = m[name][:len(m[name])-1]
	dir, meta := memoryDir(t), &memoryMeta{}
	m.write(t, dir)
	require.NoError(t, wallog.ChangeState(dir, func(s *types.PersistentState) { meta.state = *s }))
	require.NoError(t, wallog.Mend(dir, fs.New(), segment.NewFiler(dir, fs.New()), meta, false))
}

// TestMetadataOfEarlier checks that old metadata are refused if they lack a segment with acknowledged entries.
func TestMetadataOfEarlier(t *testing.T) {
	images, _ := steps(t)
	full := rotations(t, images[len(images)-1])[0]
	m := maps.Clone(images[full+1])
	m[metadb.FileName] = images[full-1][metadb.FileName]
	_, err := reopened(t, m, true, "boot")
	require.ErrorIs(t, err, wal.ErrCorrupt)
	require.ErrorContains(t, err, "entries were acknowledged in segment 1")
}

// TestDamagedMetadata checks that the error names the damage instead of unknown segments.
func TestDamagedMetadata(t *testing.T) {
	m, _ := logImage(t, logsToDamage["one entry"])
	m[metadb.FileName][60] ^= 1
	_, err := reopened(t, m, true, "boot")
	require.ErrorIs(t, err, wal.ErrCorrupt)
	require.ErrorContains(t, err, "checksum mismatch in page 0")
}

// TestMetadataThatContradict checks that metadata which contradict the files are refused.
func TestMetadataThatContradict(t *testing.T) {
	images, k := steps(t)
	m := images[len(images)-1]
	type state = *types.PersistentState
	seal := func(s state) { s.Segments[2].SealTime, s.Segments[2].MaxIndex = time.Now(), k.last }
	for name, c := range map[string]struct {
		change func(s state)
		want   string
	}{
		"nothing":                 {func(state) {}, ""},
		"a segment not allocated": {func(s state) { s.NextSegmentID-- }, "which it has not allocated"},
		"no segment":              {func(s state) { *s = types.PersistentState{} }, "entries were acknowledged"},
		"a segment is left out": {func(s state) { s.Segments = slices.Delete(s.Segments, 1, 2) },
			"but the segment before ends"},
		"one is not sealed": {func(s state) { s.Segments[0].SealTime = time.Time{} },
			"neither sealed nor the last"},
		"another index": {func(s state) { s.Segments[1].IndexStart += 8 }, "before the index"},
		"more entries": {func(s state) { s.Segments[1].MaxIndex++; s.Segments[2].BaseIndex++ },
			"that was completed"},
		"another codec":              {func(s state) { s.Segments[1].Codec++ }, "belongs to another segment"},
		"the last one is sealed too": {seal, "before the index"},
	} {
		dir := memoryDir(t)
		m.write(t, dir)
		require.NoError(t, wallog.ChangeState(dir, c.change))
		w, err := wallog.OpenOn(dir, fs.New(), smallSegment, true, "boot")
		if c.want == "" {
			require.NoError(t, err, name)
			require.NoError(t, k.holds(w))
			require.NoError(t, w.Close())
			continue
		}
		require.ErrorIs(t, err, wal.ErrCorrupt, name)
		require.ErrorContains(t, err, c.want, name)
	}
}

// TestManySegments checks a list of segments that is longer than bbolt's first page.
func TestManySegments(t *testing.T) {
	m, k := logImage(t, func(t testing.TB, w *wallog.Log, k *kept) {
		for range 60 {
			k.store(t, w, 1, 1500)
		}
	})
	require.Greater(t, len(m), 20)
	for _, boot := range []string{"boot", "next boot"} {
		w, err := reopened(t, m, true, boot)
		require.NoError(t, err)
		require.NoError(t, k.holds(w))
		require.NoError(t, w.Close())
	}
}
