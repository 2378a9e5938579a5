package persistence

import (
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	// paceBytesPerSecond is how fast Pebble's tables are written while decisions go
	// on: what merges them competes with decisions for processor and disk, and has no
	// reason to hurry. It is several times as fast as changes can come.
	paceBytesPerSecond = 32 << 20
	// paceStep is the shortest rest worth taking.
	paceStep = time.Millisecond
)

// pacedFS makes whoever writes a table rest in proportion to what was written.
type pacedFS struct{ vfs.FS }

func (p pacedFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := p.FS.Create(name, c)
	if err != nil || !strings.HasSuffix(name, ".sst") {
		return f, err
	}
	return &pacedFile{File: f}, nil
}

func (p pacedFS) Unwrap() vfs.FS { return p.FS }

// pacedFile is written by one goroutine.
type pacedFile struct {
	vfs.File
	owed time.Duration
}

func (f *pacedFile) Write(b []byte) (int, error) {
	n, err := f.File.Write(b)
	f.owed += time.Duration(n) * time.Second / paceBytesPerSecond
	if f.owed >= paceStep {
		time.Sleep(f.owed)
		f.owed = 0
	}
	return n, err
}
