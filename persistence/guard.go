package persistence

import (
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// guardFS is the file system between Pebble and the disk. Once armed, it ends the process at the first write, sync,
// creation, rename or removal that fails. After such a failure the state of the disk is unknown. A second sync may
// succeed although the data of the failed sync is lost. Pebble itself retries some failures forever and panics at
// others. Preallocation may fail without consequence, because not every file system supports it.
type guardFS struct {
	vfs.FS
	armed atomic.Bool
	fatal func(error) // does not return
}

// check ends the process if err is a disk failure and the guard is armed. Otherwise it returns err.
func (g *guardFS) check(err error) error {
	if err == nil || errors.Is(err, fs.ErrNotExist) || !g.armed.Load() {
		return err
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		g.fatal(fmt.Errorf("%w: %w", ErrDiskFullLive, err))
	}
	g.fatal(fmt.Errorf("%w: %w", ErrDisk, err))
	return err
}

func (g *guardFS) wrap(f vfs.File, err error) (vfs.File, error) {
	if g.check(err) != nil {
		return nil, err
	}
	return guardFile{File: f, guard: g}, nil
}

func (g *guardFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return g.wrap(g.FS.Create(name, c))
}

func (g *guardFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	return g.wrap(g.FS.OpenReadWrite(name, c, o...))
}

func (g *guardFS) OpenDir(name string) (vfs.File, error) { return g.wrap(g.FS.OpenDir(name)) }

func (g *guardFS) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return g.wrap(g.FS.ReuseForWrite(from, to, c))
}

func (g *guardFS) Link(from, to string) error   { return g.check(g.FS.Link(from, to)) }
func (g *guardFS) Rename(from, to string) error { return g.check(g.FS.Rename(from, to)) }
func (g *guardFS) Remove(name string) error     { return g.check(g.FS.Remove(name)) }
func (g *guardFS) Unwrap() vfs.FS               { return g.FS }

type guardFile struct {
	vfs.File
	guard *guardFS
}

func (f guardFile) Write(b []byte) (int, error) {
	n, err := f.File.Write(b)
	return n, f.guard.check(err)
}

func (f guardFile) WriteAt(b []byte, at int64) (int, error) {
	n, err := f.File.WriteAt(b, at)
	return n, f.guard.check(err)
}

func (f guardFile) SyncTo(length int64) (bool, error) {
	full, err := f.File.SyncTo(length)
	return full, f.guard.check(err)
}

func (f guardFile) Sync() error     { return f.guard.check(f.File.Sync()) }
func (f guardFile) SyncData() error { return f.guard.check(f.File.SyncData()) }
func (f guardFile) Close() error    { return f.guard.check(f.File.Close()) }
