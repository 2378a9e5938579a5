package persistence

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/cockroachdb/pebble/v2"

	"github.com/weir-project/weir/limiter"
)

// Reasons for which a data directory is refused and a running node stops. The texts say what to do.
var (
	ErrInUse     = errors.New("another weir is using it: stop that one, or choose another data directory")
	ErrForeign   = errors.New("it holds something else than weir's data: choose an empty or a new directory")
	ErrClustered = errors.New(
		"it is that of a node of a cluster: start it with the --node-id, or the --durability, that it was begun with")
	ErrNewer   = errors.New("it was written by a newer weir: start that version, or choose another data directory")
	ErrDamaged = errors.New("it is damaged, and nothing was loaded or changed: keep it, and restore a backup " +
		"into another directory, or have a member of a cluster rejoin with an empty one: " +
		"docs/operations.md#a-file-is-damaged")
	ErrNotWritable = errors.New("weir may not write there: check its owner, its mode and how it is mounted")
	ErrDiskFull    = errors.New("the disk is full: free some space and start again")
	ErrClockKind   = errors.New(
		"its time comes from the other kind of clock: real and test clocks do not mix in one data directory")

	ErrNoLinks = errors.New("its file system has no hard links, which images of the state are made of: choose a " +
		"data directory on a local disk")

	ErrNoImage   = errors.New("there is no such image")
	ErrImageUsed = errors.New("this image is being read")
	ErrNotLoaded = errors.New("no state is loaded: the last load of an image failed, or its directory is closed")
	ErrTooLarge  = errors.New("too large for an image")
	ErrStream    = errors.New("this is not the whole stream of an image")

	ErrBackingUp   = errors.New("another backup is under way: one at a time")
	ErrNoBackup    = errors.New("this is no whole backup, and nothing was restored: take another one")
	ErrBackupNewer = errors.New(
		"a newer weir wrote this backup, and nothing was restored: restore it with that version")
	ErrNotEmpty = errors.New("the directory is not empty, and nothing was restored: choose an empty or a new one")

	ErrDisk         = errors.New("the disk failed, so weir stops")
	ErrDiskFullLive = errors.New("the disk is full, so weir stops: free some space and start it again")
	ErrDamagedLive  = errors.New("what was written earlier can no longer be read: check the disk")
	ErrNoDisk       = limiter.ErrNoDisk
	ErrClosed       = errors.New("the limiter is closed")
)

// refusal wraps a failure to open or read the directory with its sentinel error. It returns unknown failures unchanged.
func refusal(err error) error {
	for _, known := range []error{ErrInUse, ErrForeign, ErrClustered, ErrNewer, ErrDamaged, ErrClockKind, ErrNoLinks,
		ErrNoImage, ErrStream} {
		if errors.Is(err, known) {
			return err
		}
	}
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%w (%v)", ErrNotWritable, err)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w (%v)", ErrDiskFull, err)
	case pebble.IsCorruptionError(err), errors.Is(err, pebble.ErrDBDoesNotExist), errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w (%v)", ErrDamaged, err)
	}
	return err
}
