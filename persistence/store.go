package persistence

import (
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weir-project/weir/engine"
)

const (
	// chunkEntries is the number of entries that Drain hands out at once. It is large enough to amortise the cost of a
	// batch, and small enough to be copied and written within a millisecond.
	chunkEntries = 1024
	// maxBatchBytes splits a chunk of large entries (sliding logs of megabytes), because a batch is held in memory
	// twice during its commit.
	maxBatchBytes = 4 << 20
	// idleRecordNs is the maximum age of the clock record while nothing changes. A flush every 600 ms would keep an
	// idle disk awake. After a crash, the restart adds the time since the record by the wall clock.
	idleRecordNs = int64(10e9)
)

// StoreOptions configure a Store or Images.
type StoreOptions struct {
	Dir    string
	FS     vfs.FS       // nil: the machine's file system
	Logger *slog.Logger // nil: slog.Default
	// OnFatal is called when the disk fails at run time, and must not return. If it is nil, the error is logged and the
	// process ends with code 1.
	OnFatal func(error)

	Progress *Progress // of Load; nil: nobody asks

	renewal renewal // usualRenewal by default; tests set other values
	eager   bool    // in tests: Images closes work/ after each Seal and Load
}

// ready sets defaults.
func (o *StoreOptions) ready() {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.renewal == (renewal{}) {
		o.renewal = usualRenewal
	}
}

// Store keeps entries and the clock record in a data directory. The caller first calls Load and Begin, each once. Then
// one goroutine at a time may call Flush, Clear or Close.
type Store struct {
	db       *pebble.DB // read-only before Begin, unless the directory is new
	options  func() *pebble.Options
	journal  journal
	spread   spread
	dir      directory
	guard    *guardFS
	lock     *pebble.Lock
	fatal    func(error)
	loaded   atomic.Bool // if true, damage found in the background is fatal
	fresh    bool        // no first start of this directory has finished
	marked   mark        // the promise of the marks when the store was opened
	marks    *markFile   // nil before Begin
	last     Record      // the newest record written or read
	hasLast  bool
	seed     engine.HashSeed
	progress *Progress
	seeded   bool // the seed is that of the directory
}

// OpenStore opens or creates the data directory. Every error says what was found and what to do, and leaves the state
// in the directory unchanged.
func OpenStore(o StoreOptions) (*Store, error) {
	o.ready()
	s := &Store{fatal: stopper(o.Logger, o.OnFatal), progress: o.Progress}
	s.guard = &guardFS{FS: o.FS, fatal: s.fatal}
	s.dir = directory{fs: s.guard, path: o.Dir}
	if err := s.open(o); err != nil {
		return nil, errors.Join(fmt.Errorf("data directory %q: %w", o.Dir, refusal(err)), s.abandon())
	}
	return s, nil
}

func (s *Store) open(from StoreOptions) (err error) {
	if s.fresh, err = s.dir.inspect(); err != nil {
		return err
	}
	if s.fresh {
		if err := s.dir.begin(); err != nil {
			return err
		}
	}
	state := s.dir.file(stateName)
	if s.fresh {
		if err := s.dir.make(state); err != nil {
			return err
		}
	}
	if s.lock, err = lockDirectory(state, s.dir.fs); err != nil {
		return err
	}
	if !s.fresh {
		if s.marked, err = s.dir.readMark(); err != nil {
			return err
		}
	}
	s.options = func() *pebble.Options {
		o := pebbleOptions(s.dir.fs, from.Logger, s.fatal, &s.loaded)
		o.Lock = s.lock
		return o
	}
	o, open := s.options(), openPebble
	if !s.fresh {
		o.ReadOnly, open = true, openExisting
	}
	if s.db, err = open(state, o); err != nil {
		return err
	}
	s.guard.armed.Store(s.fresh)
	return s.readRecord(from.renewal)
}

// reopen opens a store for writing, after all of it was read and verified. When Pebble opens a store for writing, it
// rewrites its manifest and its write-ahead log, and removes files that these do not name.
func (s *Store) reopen() (err error) {
	if s.fresh {
		return nil
	}
	if err := s.db.Close(); err != nil {
		return err
	}
	s.db = nil
	if err := s.dropBackup(); err != nil {
		return err
	}
	if s.db, err = openExisting(s.dir.file(stateName), s.options()); err != nil {
		return err
	}
	again, _, err := openJournal(s.db, clockRecord, s.journal.renewal)
	if err == nil && again.next != s.journal.next {
		err = fmt.Errorf("%w (on a second read it ends at item %d, not %d)", ErrDamaged, again.next-1, s.journal.next-1)
	}
	s.journal.db = s.db
	s.guard.armed.Store(true)
	return err
}

// Load loads the stored entries into to, in parallel on all processors. It omits entries that are idle at the given
// stamp. The stamp must not be after the record passed to Begin. Otherwise a later start could have an earlier stamp,
// at which an omitted entry is not idle. After any error the caller must discard to.
func (s *Store) Load(at engine.Stamp, to Loader) error { return s.journal.load(at, to, s.progress) }

// readRecord reads the clock record of the last flush, and compares it with the mark.
func (s *Store) readRecord(r renewal) error {
	j, record, err := openJournal(s.db, clockRecord, r)
	switch {
	case err != nil:
		return err
	case record != nil:
		if s.last, err = decodeRecord(record); err != nil {
			return err
		}
		s.hasLast = true
	case !s.fresh:
		return fmt.Errorf("%w (it has no clock record)", ErrDamaged)
	}
	s.journal = j
	if s.last.Flush < s.marked.Flush || j.next < s.marked.Item {
		return fmt.Errorf("%w (it ends at flush %d with item %d, but flush %d with item %d was written)",
			ErrDamaged, s.last.Flush, j.next-1, s.marked.Flush, max(s.marked.Item, 1)-1)
	}
	return nil
}

// Last returns the newest clock record, or false for a new directory.
func (s *Store) Last() (Record, bool) { return s.last, s.hasLast }

// Begin writes the first record of this run, and completes a new directory. The caller calls it once, after Load.
func (s *Store) Begin(now Record) error {
	if err := s.begin(now); err != nil {
		return refusal(err)
	}
	if err := s.keepSeed(); err != nil {
		return refusal(err)
	}
	s.loaded.Store(true)
	return nil
}

// begin writes the marks before it raises the directory's format, because the new format requires marks.
func (s *Store) begin(now Record) (err error) {
	if err := s.reopen(); err != nil {
		return err
	}
	if s.marks, err = s.dir.openMarks(mark{Flush: s.last.Flush, Item: s.journal.next}); err != nil {
		return err
	}
	if !s.fresh {
		if err := s.dir.upgrade(); err != nil {
			return err
		}
	}
	s.last.Flush++
	if err := s.commit(nil, now, pebble.Sync); err != nil {
		return err
	}
	if err := s.writeMark(); err != nil || !s.fresh {
		return err
	}
	s.fresh = false
	return s.dir.finish()
}

// Clear makes the next flush delete every entry that was written before the call of Clear.
func (s *Store) Clear() { s.journal.forget() }

// Close closes the store. It first flushes the memtable into tables. Every byte of a table is covered by a checksum, so
// later damage to the data cannot look like a torn write.
func (s *Store) Close() error {
	err := s.db.Flush()
	err = errors.Join(err, s.db.Close())
	s.db = nil
	if err == nil {
		err = s.writeMark()
	}
	return errors.Join(err, s.abandon())
}

// abandon releases the directory without writing more.
func (s *Store) abandon() error {
	err := s.marks.close()
	if s.db != nil {
		err = errors.Join(err, s.db.Close())
	}
	if s.lock != nil {
		err = errors.Join(err, s.lock.Close())
	}
	return err
}
