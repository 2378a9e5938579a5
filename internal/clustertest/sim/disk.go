package sim

import (
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// The directories of a machine.
const (
	dataDir = "/data"
	logDir  = "/log" // of the first group
	// tableDir is a directory in the data directory of each group.
	tableDir = "/table/"
)

// disk is the file system of one process: a view of the machine's file system that can be made to fail.
type disk struct {
	vfs.FS
	// broke ends the process. judge calls it where a write to the state images would fail; the package comment says
	// why.
	broke   func()
	removed func(path string) // is called when something was removed; nil: no calls
	dead    atomic.Bool       // the process has ended: no write fails any more

	mu     sync.Mutex
	left   int // writes until one fails; 0: no write fails
	sticky bool
	failed bool // a write has failed
}

func syncDir(on vfs.FS, dir string) error {
	d, err := on.OpenDir(dir)
	if err != nil {
		return err
	}
	if err := d.Sync(); err != nil {
		d.Close()
		return err
	}
	return d.Close()
}

func newDisk(mem *vfs.MemFS, broke func()) *disk {
	d := &disk{broke: broke}
	d.FS = errorfs.Wrap(mem, errorfs.InjectorFunc(d.judge))
	return d
}

// RemoveAll removes a file or a directory.
func (d *disk) RemoveAll(path string) error {
	err := d.FS.RemoveAll(path)
	if err == nil && d.removed != nil {
		d.removed(path)
	}
	return err
}

// failAt makes the nth write from now on fail. With sticky all later writes fail too.
func (d *disk) failAt(n int, sticky bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left, d.sticky = n, sticky
}

// hasFailed reports whether a write failed.
func (d *disk) hasFailed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.failed
}

// judge decides whether an operation fails.
func (d *disk) judge(op errorfs.Op) error {
	if d.dead.Load() || op.Kind.ReadOrWrite() != errorfs.OpIsWrite || !d.due() {
		return nil
	}
	if strings.HasPrefix(op.Path, dataDir) && strings.Contains(op.Path+"/", tableDir) {
		d.broke()
		return nil
	}
	return syscall.EIO
}

func (d *disk) due() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.left == 0 {
		return false
	}
	if d.left > 1 {
		d.left--
		return false
	}
	if !d.sticky {
		d.left = 0
	}
	d.failed = true
	return true
}
