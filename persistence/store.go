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
	// chunkEntries is how many entries Drain hands out at once: enough to spread
	// the cost of a batch, few enough to copy in a millisecond.
	chunkEntries = 4096
	// maxBatchBytes splits a chunk of large entries (sliding logs of megabytes):
	// a batch is held in memory twice while it commits.
	maxBatchBytes = 4 << 20
	// memTableBytes and cacheBytes are small: the table of the engine is the cache,
	// and Pebble is only read at start, from end to end.
	memTableBytes = 16 << 20
	cacheBytes    = 8 << 20
	// MaxOpenFiles is how many files Pebble may keep open: it reads them at the start,
	// one after the other, and when it merges a few.
	MaxOpenFiles = 128
	// tableBytes keeps Pebble's files small enough to divide a load by.
	tableBytes = 8 << 20
	// markEvery is how many flushes pass between two marks: once a minute costs
	// nothing.
	markEvery = 60
	// idleRecordNs is how old the clock record may get while nothing changes. A
	// restart makes up for it from the wall clock, and an idle disk can sleep.
	idleRecordNs = int64(10e9)
)

// The first byte of a stored key says what it is.
const (
	entryPrefix = 'e'
	metaPrefix  = 'm'
)

var clockKey = []byte{metaPrefix, 'c'}

// StoreOptions say where a store is and whom it tells.
type StoreOptions struct {
	Dir    string
	FS     vfs.FS       // nil: the machine's file system
	Logger *slog.Logger // nil: slog.Default
	// OnFatal is called when the disk fails at run time, and must not return. nil
	// logs the error and ends the process with code 1.
	OnFatal func(error)
}

// Store keeps entries and the clock record in a data directory. Load comes first;
// then one goroutine at a time may flush or clear.
type Store struct {
	dir     directory
	guard   *guardFS
	lock    *pebble.Lock
	db      *pebble.DB
	fatal   func(error)
	loaded  atomic.Bool // from here on damage found in the background is fatal
	fresh   bool        // the first start is not finished
	marked  uint64      // the flush the mark promises
	last    Record      // the newest record written or read
	hasLast bool
}

// OpenStore opens or makes the data directory. Every error says what was found
// and what to do, and leaves the state in the directory as it was.
func OpenStore(o StoreOptions) (*Store, error) {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	s := &Store{fatal: stopper(o.Logger, o.OnFatal)}
	s.guard = &guardFS{FS: o.FS, fatal: s.fatal}
	s.dir = directory{fs: s.guard, path: o.Dir}
	if err := s.open(o.Logger); err != nil {
		return nil, errors.Join(fmt.Errorf("data directory %q: %w", o.Dir, refusal(err)), s.abandon())
	}
	return s, nil
}

func (s *Store) open(log *slog.Logger) (err error) {
	if s.fresh, err = s.dir.inspect(); err != nil {
		return err
	}
	if s.fresh {
		if err := s.dir.begin(); err != nil {
			return err
		}
	}
	state := s.dir.file(stateName)
	if err := s.dir.make(state); err != nil {
		return err
	}
	if s.lock, err = lockDirectory(state, s.dir.fs); err != nil {
		return err
	}
	if !s.fresh {
		if s.marked, err = s.dir.checkMark(); err != nil {
			return err
		}
	}
	if s.db, err = openPebble(state, s.pebbleOptions(log)); err != nil {
		return err
	}
	s.guard.armed.Store(true)
	return s.readRecord()
}

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

// lockDirectory keeps every other process out, and every other store of this one.
func lockDirectory(path string, on vfs.FS) (*pebble.Lock, error) {
	lock, err := pebble.LockDirectory(path, on)
	// The lock is fcntl's, which never stops its own process; Pebble adds that.
	if errors.Is(err, syscall.EAGAIN) || err != nil && strings.Contains(err.Error(), "lock held by current process") {
		return nil, fmt.Errorf("%w (%v)", ErrInUse, err)
	}
	return lock, err
}

func (s *Store) pebbleOptions(log *slog.Logger) *pebble.Options {
	o := &pebble.Options{
		FS:                 s.dir.fs,
		Lock:               s.lock,
		FormatMajorVersion: pebbleFormat,
		ErrorIfNotExists:   !s.fresh,
		CacheSize:          cacheBytes,
		MemTableSize:       memTableBytes,
		MaxOpenFiles:       MaxOpenFiles,
		Logger:             pebbleLogger{log: log, fatal: s.fatal},
		EventListener:      s.watch(),
	}
	for i := range o.TargetFileSizes {
		o.TargetFileSizes[i] = tableBytes
	}
	return o
}

// watch ends the process when Pebble's background work fails. Pebble would try
// again at once and for ever, and Close would wait for it.
func (s *Store) watch() *pebble.EventListener {
	return &pebble.EventListener{
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			if s.loaded.Load() { // before, Load finds it too and refuses the start
				s.fatal(fmt.Errorf("%w: %s", ErrDamagedLive, info))
			}
		},
		BackgroundError: func(err error) {
			if !pebble.IsCorruptionError(err) {
				s.fatal(fmt.Errorf("%w: %w", ErrDisk, err))
			}
		},
	}
}

// readRecord finds the clock record of the last flush and holds it against the
// mark.
func (s *Store) readRecord() error {
	value, closer, err := s.db.Get(clockKey)
	switch {
	case err == nil:
		defer closer.Close()
		if s.last, err = decodeRecord(value); err != nil {
			return err
		}
		s.hasLast = true
	case !errors.Is(err, pebble.ErrNotFound):
		return err
	case !s.fresh:
		return fmt.Errorf("%w (it has no clock record)", ErrDamaged)
	}
	if s.last.Flush < s.marked {
		return fmt.Errorf("%w (it ends at flush %d, but flush %d was written)", ErrDamaged, s.last.Flush, s.marked)
	}
	return nil
}

// Last returns the newest clock record; false in a new directory.
func (s *Store) Last() (Record, bool) { return s.last, s.hasLast }

// Begin writes the first record of this run and makes a new directory a real one.
// Call it once, after Load.
func (s *Store) Begin(now Record) error {
	s.last.Flush++
	if err := s.commit(nil, now, pebble.Sync); err != nil {
		return refusal(err)
	}
	s.loaded.Store(true)
	if s.fresh {
		if err := s.dir.finish(); err != nil {
			return refusal(err)
		}
		s.fresh = false
	}
	return refusal(s.dir.writeMark(s.last.Flush))
}

// Clear forgets every entry, on disk when it returns.
func (s *Store) Clear(now Record) error {
	s.last.Flush++
	b := s.db.NewBatch()
	defer b.Close()
	if err := b.DeleteRange([]byte{entryPrefix}, []byte{entryPrefix + 1}, nil); err != nil {
		return err
	}
	return s.seal(b, now, pebble.Sync)
}

// Close ends the store. Everything flushed goes from the log into tables first:
// their every byte is under a checksum, so later damage cannot pass for a crash.
func (s *Store) Close() error {
	err := s.db.Flush()
	err = errors.Join(err, s.db.Close())
	s.db = nil
	if err == nil {
		err = s.dir.writeMark(s.last.Flush)
	}
	return errors.Join(err, s.abandon())
}

// abandon lets go of the directory without writing more.
func (s *Store) abandon() error {
	var err error
	if s.db != nil {
		err = s.db.Close()
	}
	if s.lock != nil {
		err = errors.Join(err, s.lock.Close())
	}
	return err
}
