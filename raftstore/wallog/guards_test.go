package wallog_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/metadb"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/weir-project/weir/raftstore/wallog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// reopened opens a log on an image, whose machine is up since it was taken.
func reopened(t *testing.T, m image, sync bool, boot string) (*wallog.Log, error) {
	t.Helper()
	dir := memoryDir(t)
	m.write(t, dir)
	return wallog.OpenOn(dir, fs.New(), smallSegment, sync, boot)
}

// segmentName is the file of a segment.
func segmentName(base uint64, id int) string { return fmt.Sprintf("%020d-%016x.wal", base, id) }

func (m image) segments() (n int) {
	for name := range m {
		if filepath.Ext(name) == ".wal" {
			n++
		}
	}
	return n
}

// steps makes a log of large entries, and takes an image before each of them and after the
// last. Its third segment is the last one.
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

// until is what was kept when an entry was the last.
func (k *kept) until(last uint64) *kept {
	then := *k
	then.last, then.data = last, maps.Clone(k.data)
	return &then
}

// TestAnInterruptedRotation: a process ends between the append that fills a segment and the
// metadata that name the next one. The log opens, and takes the next entry.
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

// TestMend: it completes a rotation, and changes nothing in a log that it refuses.
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
	require.NoError(t, mend(), "the file of the new segment is not there yet")
}

// TestMetadataOfEarlier: entries were acknowledged in a segment that the metadata do not
// list, because they are those of some time ago.
func TestMetadataOfEarlier(t *testing.T) {
	images, _ := steps(t)
	full := rotations(t, images[len(images)-1])[0]
	m := maps.Clone(images[full+1])
	m[metadb.FileName] = images[full-1][metadb.FileName]
	_, err := reopened(t, m, true, "boot")
	require.ErrorIs(t, err, wal.ErrCorrupt)
	require.ErrorContains(t, err, "entries were acknowledged in segment 1")
}

// TestDamagedMetadata: the damage is named, not that the segments seem to be unknown.
func TestDamagedMetadata(t *testing.T) {
	m, _ := logImage(t, logsToDamage["one entry"])
	m[metadb.FileName][60] ^= 1
	_, err := reopened(t, m, true, "boot")
	require.ErrorIs(t, err, wal.ErrCorrupt)
	require.ErrorContains(t, err, "checksum mismatch in page 0")
}

// TestMetadataThatContradict: whatever the metadata say of the segments, they are refused
// unless the files say so too.
func TestMetadataThatContradict(t *testing.T) {
	images, k := steps(t)
	m := images[len(images)-1]
	for name, c := range map[string]struct {
		change func(s *types.PersistentState)
		want   string
	}{
		"nothing":                    {func(*types.PersistentState) {}, ""},
		"a segment not allocated":    {func(s *types.PersistentState) { s.NextSegmentID-- }, "which it has not allocated"},
		"no segment":                 {func(s *types.PersistentState) { *s = types.PersistentState{} }, "entries were acknowledged"},
		"a segment is left out":      {func(s *types.PersistentState) { s.Segments = slices.Delete(s.Segments, 1, 2) }, "but the segment before ends"},
		"one is not sealed":          {func(s *types.PersistentState) { s.Segments[0].SealTime = time.Time{} }, "neither sealed nor the last"},
		"another index":              {func(s *types.PersistentState) { s.Segments[1].IndexStart += 8 }, "before the index"},
		"more entries":               {func(s *types.PersistentState) { s.Segments[1].MaxIndex++; s.Segments[2].BaseIndex++ }, "that was completed"},
		"another codec":              {func(s *types.PersistentState) { s.Segments[1].Codec++ }, "that of another segment"},
		"the last one is sealed too": {func(s *types.PersistentState) { s.Segments[2].SealTime, s.Segments[2].MaxIndex = time.Now(), k.last }, "before the index"},
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

// TestAnIndexThatLeadsElsewhere: its checksum holds, and it does not match the entries.
func TestAnIndexThatLeadsElsewhere(t *testing.T) {
	images, _ := steps(t)
	m := images[len(images)-1]
	full := int(rotations(t, m)[0])
	b, dir := slices.Clone(m[segmentName(1, 0)]), memoryDir(t)
	used := func(b []byte) int { return (len(bytes.TrimRight(b, "\x00")) + 7) / 8 * 8 }
	begin, commit := used(images[full-1][segmentName(1, 0)]), used(b)-8
	index := commit - (4*full+7)/8*8
	b[index] ^= 8
	sum := crc32.Checksum(b[begin:commit], crc32.MakeTable(crc32.Castagnoli))
	binary.LittleEndian.PutUint32(b[commit+4:], sum)
	m = maps.Clone(m)
	m[segmentName(1, 0)] = b
	m.write(t, dir)
	_, err := wallog.OpenOn(dir, fs.New(), smallSegment, true, "boot")
	require.ErrorContains(t, err, "the index does not match the entries")
}

// TestAFileIsMissing: only the file of a segment in which nothing was acknowledged may be.
func TestAFileIsMissing(t *testing.T) {
	images, k := steps(t)
	m := images[len(images)-1]
	for name := range m {
		if filepath.Ext(name) != ".wal" {
			continue
		}
		lacking := maps.Clone(m)
		delete(lacking, name)
		_, err := reopened(t, lacking, true, "boot")
		require.ErrorIs(t, err, wal.ErrCorrupt, name)
		require.ErrorContains(t, err, "the file is missing", name)
	}
	full := rotations(t, m)[0]
	m = maps.Clone(images[full+1]) // the second segment has one entry
	m[wallog.MarkName] = images[full][wallog.MarkName]
	delete(m, segmentName(full+1, 1))
	w, err := reopened(t, m, true, "boot")
	require.NoError(t, err)
	then := k.until(full)
	require.NoError(t, then.holds(w))
	then.store(t, w, 1, 20)
	require.NoError(t, w.Close())
}

// TestAShortFileWithoutAMark: nothing tells what such a file, of an earlier weir, has held.
func TestAShortFileWithoutAMark(t *testing.T) {
	m, k := logImage(t, logsToDamage["one segment"])
	delete(m, wallog.MarkName)
	w, err := reopened(t, m, true, "boot")
	require.NoError(t, err, "a file of its whole length is good")
	require.NoError(t, k.holds(w))
	require.NoError(t, w.Close())
	name := segmentName(1, 0)
	whole := m[name]
	m[name] = whole[:len(whole)-1]
	_, err = reopened(t, m, true, "boot")
	require.ErrorContains(t, err, "shorter than when it was made")
	one, k := logImage(t, logsToDamage["one entry"])
	delete(one, wallog.MarkName)
	one[name] = one[name][:smallSegment/2]
	w, err = reopened(t, one, true, "boot")
	require.NoError(t, err, "a file that a crash left short takes a first append")
	require.NoError(t, k.holds(w))
	require.NoError(t, w.Close())
	for n := 1; n < 100; n++ {
		m[name] = whole[:n]
		w, err := reopened(t, m, true, "boot")
		if err == nil {
			require.NoError(t, w.Close())
		} else {
			require.ErrorIs(t, err, wal.ErrCorrupt, "%d bytes", n)
		}
	}
}

// TestTheSystemKeepsWhatAKillLeaves: appends that were left to the operating system may be
// lost with the machine, and with nothing else.
func TestTheSystemKeepsWhatAKillLeaves(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	w, err := wallog.OpenOn(dir, fs.New(), smallSegment, false, "boot")
	require.NoError(t, err)
	k := &kept{first: 1, data: map[uint64]string{}}
	k.store(t, w, 1, 300)
	older := readImage(t, dir)[wallog.MarkName]
	k.store(t, w, 1, 200)
	m := readImage(t, dir)
	require.NoError(t, w.Close())
	for slot := range 2 { // the newer one is lost
		if part := m[wallog.MarkName][slot*wallog.SlotStride:][:80]; !bytes.Equal(part, older[slot*wallog.SlotStride:][:80]) {
			clear(part)
		}
	}
	used := len(bytes.TrimRight(m[segmentName(1, 0)], "\x00"))
	m[segmentName(1, 0)][used-40] ^= 1
	_, err = reopened(t, m, false, "boot")
	require.ErrorIs(t, err, wal.ErrCorrupt)
	w, err = reopened(t, m, false, "next boot")
	require.NoError(t, err)
	require.NoError(t, k.until(1).holds(w))
	require.NoError(t, w.Close())
}

// TestManySegments: the list of segments is longer than bbolt keeps in its first page.
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

var errDisk = errors.New("the disk fails")

// failingFiles fail in one way, when they are told to.
type failingFiles struct {
	types.VFS
	fails *string
}

func (v failingFiles) OpenReader(dir, name string) (types.ReadableFile, error) {
	if *v.fails == "open" {
		return nil, errDisk
	}
	f, err := v.VFS.OpenReader(dir, name)
	return failingReader{f, v.fails}, err
}

func (v failingFiles) OpenWriter(dir, name string) (types.WritableFile, error) {
	f, err := v.VFS.OpenWriter(dir, name)
	return failingFile{f, v.fails}, err
}

type failingReader struct {
	types.ReadableFile
	fails *string
}

func (f failingReader) ReadAt(b []byte, at int64) (int, error) {
	if *f.fails == "read" {
		return 0, errDisk
	}
	return f.ReadableFile.ReadAt(b, at)
}

type failingFile struct {
	types.WritableFile
	fails *string
}

func (f failingFile) Sync() error {
	if *f.fails == "sync" {
		return errDisk
	}
	return f.WritableFile.Sync()
}

// TestADiskThatFails: the log says so, takes it for no damage, and acknowledges nothing that
// was not synced.
func TestADiskThatFails(t *testing.T) {
	m, k := logImage(t, logsToDamage["several segments"])
	fails, dir := "", memoryDir(t)
	m.write(t, dir)
	files := failingFiles{fs.New(), &fails}
	for _, fails = range []string{"open", "read", "sync"} {
		_, err := wallog.OpenOn(dir, files, smallSegment, true, "boot")
		require.ErrorIs(t, err, errDisk, fails)
		require.NotErrorIs(t, err, wal.ErrCorrupt, fails)
	}
	fails = ""
	w, err := wallog.OpenOn(dir, files, smallSegment, true, "boot")
	require.NoError(t, err)
	before := readImage(t, dir)[wallog.MarkName]
	fails = "sync"
	require.ErrorIs(t, w.StoreLogs([]*raft.Log{{Index: k.last + 1, Data: []byte("x")}}), errDisk)
	require.Equal(t, before, readImage(t, dir)[wallog.MarkName], "nothing was acknowledged")
	fails = ""
	require.NoError(t, w.Close())
	require.ErrorIs(t, w.StoreLogs([]*raft.Log{{Index: k.last + 1}}), wal.ErrClosed)
}

// TestAMarkThatCannotBeRead keeps a log closed, and unchanged.
func TestAMarkThatCannotBeRead(t *testing.T) {
	m, k := logImage(t, logsToDamage["one segment"])
	dir := memoryDir(t)
	m.write(t, dir)
	path := filepath.Join(dir, wallog.MarkName)
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Mkdir(path, 0o755))
	_, err := wallog.OpenOn(dir, fs.New(), smallSegment, true, "boot")
	require.Error(t, err)
	meta, err := os.ReadFile(filepath.Join(dir, metadb.FileName))
	require.NoError(t, err)
	require.Equal(t, m[metadb.FileName], meta)

	// One that cannot be made: what was opened before is closed again.
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Symlink(filepath.Join(dir, "missing", "file"), path))
	_, err = wallog.OpenOn(dir, fs.New(), smallSegment, true, "boot")
	require.Error(t, err)
	require.NoError(t, os.Remove(path))
	w, err := wallog.OpenOn(dir, fs.New(), smallSegment, true, "boot")
	require.NoError(t, err)
	require.NoError(t, k.holds(w))
	require.NoError(t, w.Close())
}

func TestCorruptErrorsNameThePlace(t *testing.T) {
	for want, e := range map[string]wallog.CorruptError{
		"log is corrupt (f): r":                        {File: "f", Reason: "r"},
		"log is corrupt (f at offset 1): r":            {File: "f", Reason: "r", Offset: 1},
		"log entry 1 is corrupt (f): r":                {File: "f", Reason: "r", Entry: 1},
		"log entry 2 is corrupt (f at offset 8192): r": {File: "f", Reason: "r", Entry: 2, Offset: 8192},
	} {
		require.EqualError(t, &e, want)
	}
}
