package wallog_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/raftstore/wallog"
)

// TestDataThatLookLikeFrames checks that a torn write never counts as damage, whatever the data of its entry look
// like. A client chooses those data.
func TestDataThatLookLikeFrames(t *testing.T) {
	entry := []byte{segment.FrameEntry, 0, 0, 0, 0, 0, 0, 0}
	commit := binary.LittleEndian.AppendUint32([]byte{segment.FrameCommit, 0, 0, 0},
		crc32.Checksum(entry, crc32.MakeTable(crc32.Castagnoli)))
	for name, pattern := range map[string][]byte{
		"a commit frame":        {segment.FrameCommit, 0, 0, 0, 1, 1, 1, 1},
		"a batch without entry": append(entry, commit...),
		"zeros, and few others": append(make([]byte, 15), 1),
	} {
		t.Run(name, func(t *testing.T) {
			for shift := range len(pattern) {
				tearsOf(t, append(make([]byte, shift, 1500), bytes.Repeat(pattern, 1400/len(pattern))...))
			}
		})
	}
}

// tearsOf tears a write of an entry after each sector, and removes each single sector.
func tearsOf(t *testing.T, data []byte) {
	t.Helper()
	var before image
	var acknowledged kept
	after, _ := logImage(t, func(t testing.TB, w *wallog.Log, k *kept) {
		k.store(t, w, 1, 100, 20)
		before, acknowledged = readImage(t, w.Dir()), *k
		acknowledged.data = maps.Clone(k.data)
		k.storeData(t, w, 1, data)
	})
	name := fmt.Sprintf("%020d-%016x.wal", 1, 0)
	sectors := len(bytes.TrimRight(after[name], "\x00")) / sector
	dir := memoryDir(t)
	try := func(arrived func(i int) bool) {
		torn := slices.Clone(before[name])
		for i := range len(torn) / sector {
			if arrived(i) {
				copy(torn[i*sector:(i+1)*sector], after[name][i*sector:])
			}
		}
		m := maps.Clone(before)
		m[name] = torn
		m.write(t, dir)
		w, err := wallog.OpenOn(dir, fs.New(), smallSegment, true, "next boot")
		require.NoError(t, err)
		require.NoError(t, acknowledged.holds(w))
		require.NoError(t, w.Close())
	}
	for cut := 1; cut <= sectors; cut++ {
		try(func(i int) bool { return i < cut })
	}
	for missing := 1; missing <= sectors; missing++ {
		try(func(i int) bool { return i != missing })
	}
}

// TestAShortFileTakesEntries checks that the log continues in a short segment file, and opens again. A crash or a
// full disk at the creation of a segment leaves such a file.
func TestAShortFileTakesEntries(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	open := func() *wallog.Log {
		w, err := wallog.OpenOn(dir, fs.New(), smallSegment, true, "boot")
		require.NoError(t, err)
		return w
	}
	require.NoError(t, open().Close())
	require.NoError(t, os.Truncate(filepath.Join(dir, fmt.Sprintf("%020d-%016x.wal", 1, 0)), 0))
	k := &kept{first: 1, data: map[uint64]string{}}
	w := open()
	for range 3 {
		k.store(t, w, 1, 50)
	}
	require.NoError(t, w.Close())
	w = open()
	last, err := w.LastIndex()
	require.NoError(t, err)
	require.Equal(t, k.last, last)
	require.NoError(t, w.Close())
}

// countedFiles counts the syncs of each file.
type countedFiles struct {
	types.VFS
	syncs map[string]int
}

func (v countedFiles) Create(dir, name string, size uint64) (types.WritableFile, error) {
	f, err := v.VFS.Create(dir, name, size)
	return countedFile{f, name, v.syncs}, err
}

func (v countedFiles) OpenWriter(dir, name string) (types.WritableFile, error) {
	f, err := v.VFS.OpenWriter(dir, name)
	return countedFile{f, name, v.syncs}, err
}

type countedFile struct {
	types.WritableFile
	name  string
	syncs map[string]int
}

func (f countedFile) Sync() error {
	f.syncs[f.name]++
	return f.WritableFile.Sync()
}

// TestACompletedSegmentIsOnDisk checks that a completed segment is synced even if appends are not. A loss of power
// then removes the end of the log, and no part of its middle.
func TestACompletedSegmentIsOnDisk(t *testing.T) {
	dir, k := filepath.Join(t.TempDir(), "log"), &kept{first: 1, data: map[uint64]string{}}
	synced := map[string]int{}
	for range 2 {
		files := countedFiles{fs.New(), map[string]int{}}
		w, err := wallog.OpenOn(dir, files, smallSegment, false, "boot")
		require.NoError(t, err)
		for range 20 {
			k.store(t, w, 1, 900)
		}
		require.NoError(t, w.Close())
		require.GreaterOrEqual(t, len(files.syncs), 3)
		for name, n := range files.syncs {
			require.Equal(t, 1, n, name)
			require.Zero(t, synced[name], "a start must not sync the segment again: %s", name)
			synced[name] = n
		}
	}
}
