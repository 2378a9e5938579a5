package chaos

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

const (
	// smallDiskBytes holds a node's log and state for a long run. A tmpfs takes memory only for its content, so only
	// a full disk takes this much.
	smallDiskBytes = 512 << 20
	ballastName    = "ballast"
	ballastChunk   = 1 << 20
)

// ErrNoSmallDisk reports that this process may not mount a file system.
var ErrNoSmallDisk = errors.New("cannot mount a tmpfs, so no disk can be filled up")

// SmallDisk is a separate file system for one node's data, small enough to fill.
type SmallDisk struct{ dir string }

// MountSmallDisk mounts a tmpfs on dir, which root may do on Linux.
func MountSmallDisk(dir string) (*SmallDisk, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if err := syscall.Mount("weir-chaos", dir, "tmpfs", 0, fmt.Sprintf("size=%d", smallDiskBytes)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoSmallDisk, err)
	}
	return &SmallDisk{dir: dir}, nil
}

// Fill writes until the disk is full.
func (d *SmallDisk) Fill() error {
	f, err := os.Create(filepath.Join(d.dir, ballastName))
	if err != nil {
		return err
	}
	defer f.Close()
	for size := ballastChunk; size > 0; {
		n, err := f.Write(make([]byte, size))
		switch {
		case errors.Is(err, syscall.ENOSPC) && n == 0:
			size /= 2
		case err != nil && !errors.Is(err, syscall.ENOSPC):
			return err
		}
	}
	return nil
}

// Free removes the content that Fill wrote.
func (d *SmallDisk) Free() error { return os.Remove(filepath.Join(d.dir, ballastName)) }

// Unmount releases the memory. The node must have ended.
func (d *SmallDisk) Unmount() { _ = syscall.Unmount(d.dir, syscall.MNT_DETACH) }
