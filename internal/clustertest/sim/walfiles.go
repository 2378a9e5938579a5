package sim

import (
	"io/fs"
	"slices"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft-wal/types"
)

// walFiles stores the segments of the replicated log on a simulated disk, with the same syncs as raft-wal's own file
// system.
type walFiles struct {
	on     vfs.FS
	noSync bool // a fault: acknowledges writes that are not on disk
}

var _ types.VFS = walFiles{}

// ListDir returns the names in a directory, ordered.
func (w walFiles) ListDir(dir string) ([]string, error) {
	names, err := w.on.List(dir)
	slices.Sort(names)
	return names, err
}

// Create makes a file of the given size.
func (w walFiles) Create(dir, name string, size uint64) (types.WritableFile, error) {
	path := w.on.PathJoin(dir, name)
	if _, err := w.on.Stat(path); err == nil {
		return nil, fs.ErrExist
	}
	f, err := w.on.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	if _, err := f.WriteAt(make([]byte, size), 0); err != nil {
		f.Close()
		return nil, err
	}
	return w.wrap(f, dir), nil
}

// Delete removes a file durably.
func (w walFiles) Delete(dir, name string) error {
	if err := w.on.Remove(w.on.PathJoin(dir, name)); err != nil {
		return err
	}
	return syncDir(w.on, dir)
}

// OpenReader opens an existing file.
func (w walFiles) OpenReader(dir, name string) (types.ReadableFile, error) {
	return w.on.Open(w.on.PathJoin(dir, name))
}

// OpenWriter opens an existing file.
func (w walFiles) OpenWriter(dir, name string) (types.WritableFile, error) {
	path := w.on.PathJoin(dir, name)
	if _, err := w.on.Stat(path); err != nil {
		return nil, err
	}
	f, err := w.on.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	return w.wrap(f, dir), nil
}

func (w walFiles) wrap(f vfs.File, dir string) types.WritableFile {
	return &walFile{File: f, files: w, dir: dir}
}

// walFile syncs its directory at its first sync.
type walFile struct {
	vfs.File
	files walFiles
	dir   string
	named atomic.Bool
}

func (f *walFile) Sync() error {
	if f.files.noSync {
		return nil
	}
	if err := f.File.Sync(); err != nil {
		return err
	}
	if f.named.Swap(true) {
		return nil
	}
	return syncDir(f.files.on, f.dir)
}
