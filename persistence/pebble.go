package persistence

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// pebbleFormat is the version of Pebble's own files. It is fixed, so that an update of Pebble alone never makes a
// directory unreadable for the previous version of weir. This format has checksums in table footers, and distinguishes
// a torn write-ahead log from a damaged one.
const pebbleFormat = pebble.FormatTableFormatV6

const (
	// memTableBytes and cacheBytes are small, because the engine's table has the whole state in memory, and Pebble is
	// read only at the start. Three memtables may exist: one receives writes, one is being flushed, and one is kept
	// for reuse.
	memTableBytes = 2 << 20
	cacheBytes    = 8 << 20
	// MaxOpenFiles bounds the files that Pebble keeps open. It can be small: Pebble reads the files one after another
	// at the start, and a few at once when it merges.
	MaxOpenFiles = 128
	// tableBytes is the target size of Pebble's tables. It is small, because a sync of another file waits while the
	// file system frees the blocks of a removed file.
	tableBytes = 4 << 20
	// blockBytes is the size of the blocks of a table. A start reads all of them one after another, and reading a block
	// has a cost of its own.
	blockBytes = 32 << 10
)

// openPebble opens a Pebble store. Pebble panics with an error if it cannot sync a directory. openPebble returns this
// error, so that the start is refused.
func openPebble(path string, o *pebble.Options) (db *pebble.DB, err error) {
	defer func() {
		switch failure := recover().(type) {
		case nil:
		case error:
			db, err = nil, failure
		default:
			panic(failure)
		}
	}()
	return pebble.Open(path, o)
}

// openExisting opens a Pebble store that must exist. Every error that does not come from the operating system counts as
// damage, because Pebble does not report the damage of all its files as such.
func openExisting(path string, o *pebble.Options) (*pebble.DB, error) {
	o.ErrorIfNotExists = true
	db, err := openPebble(path, o)
	var machine syscall.Errno
	if err != nil && !errors.As(err, &machine) {
		err = fmt.Errorf("%w (%w)", ErrDamaged, err)
	}
	return db, err
}

// lockDirectory locks a directory against other processes, and against other stores of this process. It returns
// ErrInUse if the directory is locked.
func lockDirectory(path string, on vfs.FS) (*pebble.Lock, error) {
	lock, err := pebble.LockDirectory(path, on)
	// The fcntl lock does not exclude its own process, so Pebble adds an error for that case.
	if errors.Is(err, syscall.EAGAIN) || err != nil && strings.Contains(err.Error(), "lock held by current process") {
		return nil, fmt.Errorf("%w (%v)", ErrInUse, err)
	}
	return lock, err
}

// pebbleOptions returns the options that Store and Images have in common. While loaded is true, damage that Pebble
// finds in the background is fatal.
func pebbleOptions(on vfs.FS, log *slog.Logger, fatal func(error), loaded *atomic.Bool) *pebble.Options {
	o := &pebble.Options{
		FS:                 on,
		FormatMajorVersion: pebbleFormat,
		CacheSize:          cacheBytes,
		MemTableSize:       memTableBytes,
		MaxOpenFiles:       MaxOpenFiles,
		Logger:             pebbleLogger{log: log, fatal: fatal},
		EventListener:      watch(fatal, loaded),
	}
	for i := range o.TargetFileSizes {
		o.TargetFileSizes[i] = tableBytes
	}
	o.Levels[0].BlockSize = blockBytes // and of the other levels
	// Blocks contain little redundancy. Compression would save a tenth of their bytes, and raise the p99 latency of a
	// busy node by a fifth.
	o.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return pebble.DBCompressionNone })
	return o
}

// watch ends the process when Pebble's background work fails. Otherwise Pebble would retry at once and forever, and
// Close would wait for it.
func watch(fatal func(error), loaded *atomic.Bool) *pebble.EventListener {
	return &pebble.EventListener{
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			if loaded.Load() { // before that, the load detects the damage and refuses the start
				fatal(fmt.Errorf("%w: %s", ErrDamagedLive, info))
			}
		},
		BackgroundError: func(err error) {
			if !pebble.IsCorruptionError(err) {
				fatal(fmt.Errorf("%w: %w", ErrDisk, err))
			}
		},
	}
}
