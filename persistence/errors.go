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
	ErrForeign   = errors.New("it holds files that weir did not write: choose an empty or a new directory")
	ErrClustered = errors.New(
		"it belongs to a node of a cluster: start it with the --node-id, or the --durability, that it was created with")
	ErrNewer = errors.New("a newer version of weir wrote it: start that version, or choose another data directory")
	ErrOlder = errors.New("a version of weir before 0.1.0 wrote it: start that version, or choose another data " +
		"directory")
	ErrDamaged = errors.New("it is damaged, and nothing was loaded or changed: keep it, and restore a backup " +
		"into another directory, or have a member of a cluster rejoin with an empty one: " +
		"docs/operations.md#a-file-is-damaged")
	ErrNotWritable = errors.New(
		"weir has no permission to write there: check its owner, its mode and its mount options")
	ErrDiskFull  = errors.New("the disk is full: free some space and start again")
	ErrClockKind = errors.New(
		"it was written with the other kind of clock: a data directory cannot change between the real and the test " +
			"clock")

	ErrNoLinks = errors.New("its file system has no hard links, and weir needs them for images of the state: choose " +
		"a data directory on a local disk")

	ErrNoImage   = errors.New("the image does not exist")
	ErrImageUsed = errors.New("the image is in use by a reader")
	ErrNotLoaded = errors.New("no state is loaded, because the last load of an image failed or the directory is closed")
	ErrTooLarge  = errors.New("the data is too large for an image")
	ErrStream    = errors.New("the stream of the image is incomplete or damaged")

	ErrBackingUp   = errors.New("another backup is running: only one can run at a time")
	ErrNoBackup    = errors.New("the backup is incomplete or damaged, and nothing was restored: use another backup")
	ErrBackupNewer = errors.New(
		"a newer version of weir wrote this backup, and nothing was restored: restore it with that version")
	ErrSplitHold = errors.New("the backup has a hold whose id and keys would be in different groups, and nothing was " +
		"restored: restore it into fewer groups, or end such holds with --end-holds")
	ErrNotEmpty = errors.New("the directory is not empty, and nothing was restored: choose an empty or a new directory")

	ErrDisk         = errors.New("the disk failed, so weir stops")
	ErrDiskFullLive = errors.New("the disk is full, so weir stops: free some space and start it again")
	ErrDamagedLive  = errors.New("data that was written earlier can no longer be read: check the disk")
	ErrNoDisk       = limiter.ErrNoDisk
	ErrClosed       = errors.New("the limiter is closed")
)

// refusal wraps a failure to open or read the directory with the error above that says what to do. It returns any
// other failure unchanged.
func refusal(err error) error {
	for _, known := range []error{ErrInUse, ErrForeign, ErrClustered, ErrNewer, ErrOlder, ErrDamaged, ErrClockKind,
		ErrNoLinks, ErrNoImage, ErrStream} {
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
