package wallog_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/metadb"
	"github.com/hashicorp/raft-wal/types"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/raftstore/wallog"
)

var errDisk = errors.New("the disk fails")

// failingFiles fail in one way when a test tells them to.
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

// TestADiskThatFails checks that a disk failure is reported as such and not as damage. The log acknowledges nothing
// that was not synced.
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
	require.Equal(t, before, readImage(t, dir)[wallog.MarkName], "nothing may be acknowledged")
	fails = ""
	require.NoError(t, w.Close())
	require.ErrorIs(t, w.StoreLogs([]*raft.Log{{Index: k.last + 1}}), wal.ErrClosed)
}

// TestAMarkThatCannotBeRead checks that a log whose mark cannot be read is refused and left unchanged.
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

	// A mark that cannot be created: the files opened before are closed again.
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
