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

// pebbleFormat is the on-disk version of Pebble's own files, pinned so that an
// update of the library alone never makes a directory unreadable for the weir
// before it. It has checksums in table footers and tells a torn log from a
// damaged one.
const pebbleFormat = pebble.FormatTableFormatV6

const (
	// memTableBytes and cacheBytes are small: the table of the engine is the cache,
	// and Pebble is only read at start, from end to end. There may be three of the former: one
	// is written, one goes to disk and one is kept for later.
	memTableBytes = 2 << 20
	cacheBytes    = 8 << 20
	// MaxOpenFiles is how many files Pebble may keep open: it reads them at the start,
	// one after the other, and when it merges a few.
	MaxOpenFiles = 128
	// tableBytes keeps Pebble's files small: while the file system gives back the blocks of one
	// that is removed, whoever syncs another waits.
	tableBytes = 4 << 20
)

// openPebble opens a Pebble store. Pebble panics with the error where a directory
// cannot be synced; at a start that is a refusal like any other.
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

// openExisting opens a Pebble store that must exist. Any error that is not one of the
// operating system counts as damage: Pebble reports damage only for some of its files.
func openExisting(path string, o *pebble.Options) (*pebble.DB, error) {
	o.ErrorIfNotExists = true
	db, err := openPebble(path, o)
	var machine syscall.Errno
	if err != nil && !errors.As(err, &machine) {
		err = fmt.Errorf("%w (%w)", ErrDamaged, err)
	}
	return db, err
}

// lockDirectory keeps every other process out, and every other store of this one.
func lockDirectory(path string, on vfs.FS) (*pebble.Lock, error) {
	lock, err := pebble.LockDirectory(path, on)
	// The lock is fcntl's, which never stops its own process; Pebble adds that.
	if errors.Is(err, syscall.EAGAIN) || err != nil && strings.Contains(err.Error(), "lock held by current process") {
		return nil, fmt.Errorf("%w (%v)", ErrInUse, err)
	}
	return lock, err
}

// pebbleOptions are the options of every store of entries. loaded says whether
// damage found in the background is fatal.
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
	// Blocks do not repeat themselves: compression would save a tenth of their bytes, and p99
	// of a busy node be a fifth higher.
	o.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return pebble.DBCompressionNone })
	return o
}

// watch ends the process when Pebble's background work fails. Pebble would try
// again at once and for ever, and Close would wait for it.
func watch(fatal func(error), loaded *atomic.Bool) *pebble.EventListener {
	return &pebble.EventListener{
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			if loaded.Load() { // before, the load finds it too and refuses the start
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
