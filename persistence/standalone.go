package persistence

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/engine/hashslot"
	"github.com/weir-project/weir/latency"
)

const (
	// flushEvery is the interval between flushes. A change that just missed a flush is written by the next flush, which
	// begins up to 600 ms later and ends up to 360 ms after that (spreadOver). So a crash loses at most about the last
	// second.
	flushEvery = 600 * time.Millisecond
	// collectPerShard bounds the idle entries removed per shard and flush interval. It removes ten million keys within
	// a minute, and holds a lock for microseconds.
	collectPerShard = 1024
	// endBatches bounds the batches of engine.MaxEnds ends that are told in a flush interval. They take a tenth of it.
	endBatches = 16
	// spreadOver is the part of the flush interval over which a flush spreads its pauses. With a larger part, decisions
	// are slowed down less.
	spreadOver = 0.6
	// slowFlush is the duration above which a flush is logged as slow.
	slowFlush = 5 * time.Second
)

// Options configure a Node.
type Options struct {
	DataDir  string       // "": in memory only
	FS       vfs.FS       // nil: the machine's file system
	Progress *Progress    // of the load; nil: nobody asks
	Logger   *slog.Logger // nil: slog.Default
	// OnFatal is called when the disk fails at run time, and must not return, because no decision may be answered whose
	// state cannot be saved. If it is nil, the node logs the error and ends the process with code 1.
	OnFatal func(error)
	// Table configures the table in memory. Open sets TrackChanges.
	Table engine.Options
	// TestClock makes limiter time stand still until Advance.
	TestClock bool
	// MaxDowntimeCredit bounds by how much limiter time advances for a downtime. With 0 no limiter refills during a
	// downtime.
	MaxDowntimeCredit time.Duration
	// MaxCalendarStep bounds how far calendar windows follow the wall clock after a downtime. 0 means
	// DefaultMaxCalendarStep.
	MaxCalendarStep time.Duration
	// FlushEvery is the interval between flushes. 0 means flushEvery.
	FlushEvery time.Duration
	Source     Source // nil: the machine's clocks
}

// Node is the limiter.Limiter of a server that runs alone: a table, its clock, and the store that saves both. Its
// methods may be called from many goroutines.
type Node struct {
	table *engine.Table
	clock Clock
	store *Store // nil: no disk
	log   *slog.Logger
	fatal func(error)

	idLifetimeNs int64

	disk     sync.Mutex      // held during a flush, a backup or Clear
	saves    chan chan error // requests of Save to run
	stop     chan struct{}   // closed by Close
	stopped  chan struct{}   // closed when run has ended
	once     sync.Once
	closeErr error
	lastSave atomic.Int64 // Unix nanoseconds, 0: never
	events   savedEvents
	writes   latency.Histogram
}

// Open loads the state and starts the node. Close saves the remaining changes.
func Open(o Options) (*Node, error) {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Source == nil {
		o.Source = systemSource{}
	}
	if o.FlushEvery == 0 {
		o.FlushEvery = flushEvery
	}
	o.Table.TrackChanges = o.DataDir != ""
	n := &Node{
		log:   o.Logger,
		fatal: stopper(o.Logger, o.OnFatal),

		idLifetimeNs: o.Table.IDLifetimeNs,

		saves:   make(chan chan error),
		stop:    make(chan struct{}),
		stopped: make(chan struct{}),
	}
	if err := n.restore(o); err != nil {
		return nil, err
	}
	go n.run(o.FlushEvery)
	return n, nil
}

// restore opens the store, if any, starts the clock and loads the table.
func (n *Node) restore(o Options) error {
	if o.DataDir == "" {
		n.table, n.clock = engine.NewTable(o.Table), newClock(o, nil)
		return nil
	}
	store, err := OpenStore(StoreOptions{Dir: o.DataDir, FS: o.FS, Logger: o.Logger, OnFatal: o.OnFatal,
		Progress: o.Progress})
	if err != nil {
		return err
	}
	if err := n.load(store, o); err != nil {
		return errors.Join(fmt.Errorf("data directory %q: %w", o.DataDir, err), store.abandon())
	}
	n.store = store
	store.spread.over = time.Duration(spreadOver * float64(o.FlushEvery))
	return nil
}

func (n *Node) load(store *Store, o Options) error {
	var last *Record
	if r, ok := store.Last(); ok {
		if r.Test != o.TestClock {
			return ErrClockKind
		}
		last = &r
	}
	n.clock = newClock(o, last)
	if last != nil && !o.TestClock {
		n.reportResumed(last, o)
	}
	o.Table.HashSeed = store.Seed()
	n.table = engine.NewTable(o.Table)
	if err := store.Load(n.clock.Now(), n.table); err != nil {
		return err
	}
	n.events.saved(n.newestEvent())
	return store.Begin(n.clock.Record())
}

func (o *Options) downtime() Downtime {
	return Downtime{Credit: o.MaxDowntimeCredit, Step: cmp.Or(o.MaxCalendarStep, DefaultMaxCalendarStep)}
}

// reportResumed logs how far time advanced after the downtime.
func (n *Node) reportResumed(last *Record, o Options) {
	at, wallNs := n.clock.Now(), o.Source.WallNs()
	credit := time.Duration(at.NowNs - last.LimiterNs)
	n.log.Info("time continues by the wall clock after a downtime", "limiter_time_forward", credit,
		"windows_forward", credit+time.Duration(at.WallOffsetNs-last.OffsetNs), "max_downtime_credit",
		o.MaxDowntimeCredit)
	if _, cut := last.resume(wallNs, o.downtime()); cut > 0 {
		n.log.Warn(CutAdvice, "behind", cut, "max_calendar_step", o.downtime().Step)
	}
}

func newClock(o Options, last *Record) Clock {
	if o.TestClock {
		return newTestClock(o.Source, last)
	}
	return newRawClock(o.Source, last, o.downtime())
}

// run slews the clock, removes idle entries, tells the ends of holds and flushes once per interval until Close. It then
// flushes a last time. Clear and Backup also flush, from other goroutines, so every flush holds n.disk.
func (n *Node) run(every time.Duration) {
	defer close(n.stopped)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			n.clock.Slew()
			n.table.Collect(n.clock.Now(), collectPerShard)
			n.tellEnds()
			n.flush(false)
		case caller := <-n.saves:
			n.saveFor(caller)
		case <-n.stop:
			n.flush(true)
			return
		}
	}
}

// tellEnds writes the events of holds that have ended by themselves.
func (n *Node) tellEnds() {
	for range endBatches {
		ops := n.table.Ended(engine.MaxEnds)
		if len(ops) == 0 {
			return
		}
		n.table.Decide(n.clock.Now(), ops, make([]engine.Decision, len(ops)))
	}
}

// saveFor flushes once for a caller of Save, and for all other callers of Save that are waiting now.
func (n *Node) saveFor(caller chan error) {
	callers := []chan error{caller}
	for {
		select {
		case another := <-n.saves:
			callers = append(callers, another)
			continue
		default:
		}
		break
	}
	n.flush(true)
	for _, c := range callers {
		c <- nil
	}
}

// flush writes the changes to the store, if there is one. If that fails, it ends the process.
func (n *Node) flush(force bool) {
	if n.store == nil {
		return
	}
	n.disk.Lock()
	defer n.disk.Unlock()
	start, newest := time.Now(), n.newestEvent()
	if err := n.store.Flush(n.table, n.clock.Record, force); err != nil {
		n.fatal(fmt.Errorf("%w: %w", ErrDisk, err))
	}
	end := time.Now()
	took := end.Sub(start)
	n.writes.Observe(took, 1)
	if took > slowFlush {
		n.log.Warn("saving is slow: a crash would lose more than the last second", "took", took)
	}
	n.lastSave.Store(end.UnixNano())
	n.events.saved(newest)
}

// Save writes the changes to disk and returns when they are there. Concurrent callers share one flush (group commit).
// It returns ErrNoDisk without a data directory and ErrClosed after Close. A disk failure ends the process.
func (n *Node) Save() error {
	if n.store == nil {
		return ErrNoDisk
	}
	done := make(chan error, 1)
	select {
	case n.saves <- done:
		return <-done
	case <-n.stopped:
		return ErrClosed
	}
}

// LastSave returns when the last flush by interval, Save or Close ended, or the zero time before the first one.
func (n *Node) LastSave() time.Time {
	ns := n.lastSave.Load()
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns)
}

// Close saves the changes and releases the data directory. The caller must have ended all decisions, because the
// changes of later decisions are not saved.
func (n *Node) Close() error {
	n.once.Do(func() {
		close(n.stop)
		<-n.stopped
		n.disk.Lock() // waits for a running Backup or Clear
		defer n.disk.Unlock()
		if n.store != nil {
			n.closeErr = refusal(n.store.Close())
		}
	})
	return n.closeErr
}

// Clear deletes everything but the policies, in memory and on disk.
func (n *Node) Clear() error {
	n.disk.Lock()
	defer n.disk.Unlock()
	select {
	case <-n.stopped:
		return ErrClosed
	default:
	}
	n.table.Clear()
	if n.store == nil {
		return nil
	}
	n.store.Clear()
	if err := n.store.Flush(n.table, n.clock.Record, true); err != nil {
		n.fatal(fmt.Errorf("%w: %w", ErrDisk, err))
	}
	return nil
}

// ClearDatabase deletes everything of one database but the blocks everywhere, in memory and on disk.
func (n *Node) ClearDatabase(database int) error {
	var out [1]engine.Decision
	n.table.Decide(n.clock.Now(), []engine.Op{engine.Flush(database, 0)}, out[:])
	if n.store == nil {
		return nil
	}
	return n.Save()
}

// Now returns the stamp of a decision made now.
func (n *Node) Now() engine.Stamp { return n.clock.Now() }

// Decide executes a pipeline (see engine.Table.Decide). The error is always nil.
func (n *Node) Decide(ops []engine.Op, out []engine.Decision) error {
	n.table.Decide(n.clock.Now(), ops, out)
	return nil
}

// DecideAtomic executes ops as one step (see engine.Table.DecideAtomic). The error is always nil.
func (n *Node) DecideAtomic(ops []engine.Op, out []engine.Decision) error {
	n.table.DecideAtomic(n.clock.Now(), ops, out)
	return nil
}

// Inspect describes a key (see engine.Table.Inspect).
func (n *Node) Inspect(key []byte) (engine.Info, bool) { return n.table.Inspect(n.clock.Now(), key) }

// Len returns the number of keys that are not idle.
func (n *Node) Len(database int) int64 {
	return n.table.LenWithin(n.clock.Now(), database, hashslot.All)
}

// Scan visits keys (see engine.Table.Scan).
func (n *Node) Scan(cursor uint64, count int, visit func(key []byte, a engine.Algorithm)) uint64 {
	return n.table.Scan(n.clock.Now(), cursor, count, visit)
}

// RandomKey returns a random key of a database that is not idle, or nil.
func (n *Node) RandomKey(database int) []byte {
	return n.table.RandomKey(n.clock.Now(), rand.Uint64(), database)
}

// Holds lists the open holds under a policy and a key (see engine.Table.Holds).
func (n *Node) Holds(policy, key []byte, cursor uint64, count int) ([]engine.OpenHold, uint64) {
	return n.table.Holds(n.clock.Now(), policy, key, cursor, count)
}

// BlocksEverywhere reads the blocks that apply everywhere (see engine.Table.BlocksEverywhere).
func (n *Node) BlocksEverywhere() engine.BlocksEverywhere {
	return n.table.BlocksEverywhere(n.clock.Now())
}

// FromBlock describes the block of an address (see engine.Table.FromBlock).
func (n *Node) FromBlock(key []byte) engine.FromBlock { return n.table.FromBlock(n.clock.Now(), key) }

// Top returns the heaviest keys (see engine.Table.Top).
func (n *Node) Top(v engine.Verdict, most int) []engine.Heavy {
	return n.table.Top(n.clock.Now(), v, most)
}

// Policies returns the policies in force.
func (n *Node) Policies() *engine.Policies { return n.table.Policies() }

// Stats describes the table.
func (n *Node) Stats() engine.Stats { return n.table.Stats(n.clock.Now()) }

// Advance moves a test clock forward by d. It returns false if the clock is a real one.
func (n *Node) Advance(d time.Duration) bool { return n.clock.Advance(d) }
