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
	"github.com/weir-project/weir/latency"
)

const (
	// flushEvery is how often changes go to disk. A change that a flush has just missed is
	// on disk when the next one ends, which may be spreadOver of that time later: a crash
	// is to forget no more than the last second.
	flushEvery = 600 * time.Millisecond
	// collectPerShard bounds the idle entries forgotten per shard and second. It
	// clears ten million keys in a minute and holds a lock for microseconds.
	collectPerShard = 1024
	// spreadOver is how much of the time between two flushes one may take: the more, the less
	// is it felt.
	spreadOver = 0.6
	// slowFlush is how long a flush may take before the log says so.
	slowFlush = 5 * time.Second
)

// Options say how a node keeps its state.
type Options struct {
	DataDir string       // "": keep nothing, in memory only
	FS      vfs.FS       // nil: the machine's file system
	Logger  *slog.Logger // nil: slog.Default
	// OnFatal is called when the disk fails at run time, and must not return: no
	// decision may be answered as if it were being saved. nil logs the error and
	// ends the process with code 1.
	OnFatal func(error)
	// Table shapes the table in memory; TrackChanges is set as the node needs it.
	Table engine.Options
	// TestClock makes time stand still until Advance.
	TestClock bool
	// MaxDowntimeCredit is how much of the time the node was down may count as
	// passed. DefaultMaxDowntimeCredit is a sane value; 0 gives nothing back.
	MaxDowntimeCredit time.Duration
	// MaxCalendarStep is how far windows follow the wall clock after a downtime; 0 means
	// DefaultMaxCalendarStep.
	MaxCalendarStep time.Duration
	// FlushEvery is the time between flushes; 0 means flushEvery.
	FlushEvery time.Duration
	Source     Source // nil: the machine's clocks
}

// Node is a limiter that runs alone: a table, the clock it lives by and the store
// that keeps both. Its methods may be called from many goroutines.
type Node struct {
	table *engine.Table
	clock Clock
	store *Store // nil: no disk
	log   *slog.Logger
	fatal func(error)

	idLifetimeNs int64

	disk     sync.Mutex      // held while the store is flushed or cleared
	saves    chan chan error // Save asks run
	stop     chan struct{}   // closed by Close
	stopped  chan struct{}   // closed when run has ended
	once     sync.Once
	closeErr error
	lastSave atomic.Int64 // Unix nanoseconds, 0: never
	writes   latency.Histogram
}

// Open loads the state and starts the node. Close it to save the rest.
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
		table: engine.NewTable(o.Table),
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

// restore opens the store, if there is one, starts the clock and loads the table.
func (n *Node) restore(o Options) error {
	if o.DataDir == "" {
		n.clock = newClock(o, nil)
		return nil
	}
	store, err := OpenStore(StoreOptions{Dir: o.DataDir, FS: o.FS, Logger: o.Logger, OnFatal: o.OnFatal})
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
	if err := store.Load(n.clock.Now(), n.table); err != nil {
		return err
	}
	return store.Begin(n.clock.Record())
}

func (o *Options) downtime() Downtime {
	return Downtime{Credit: o.MaxDowntimeCredit, Step: cmp.Or(o.MaxCalendarStep, DefaultMaxCalendarStep)}
}

// reportResumed logs how far time went forward after the downtime.
func (n *Node) reportResumed(last *Record, o Options) {
	at, wallNs := n.clock.Now(), o.Source.WallNs()
	credit := time.Duration(at.NowNs - last.LimiterNs)
	n.log.Info("time goes on by the wall clock", "limiter_time_forward", credit,
		"windows_forward", credit+time.Duration(at.WallOffsetNs-last.OffsetNs), "max_downtime_credit", o.MaxDowntimeCredit)
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

// run flushes, collects and slews once a period until Close, and then flushes a
// last time. It is the only one to flush.
func (n *Node) run(every time.Duration) {
	defer close(n.stopped)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			n.clock.Slew()
			n.table.Collect(n.clock.Now(), collectPerShard)
			n.flush(false)
		case caller := <-n.saves:
			n.saveFor(caller)
		case <-n.stop:
			n.flush(true)
			return
		}
	}
}

// saveFor flushes once for a caller of Save and everyone who waits by now.
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

// flush writes what changed, or does not return.
func (n *Node) flush(force bool) {
	if n.store == nil {
		return
	}
	n.disk.Lock()
	defer n.disk.Unlock()
	start := time.Now()
	if err := n.store.Flush(n.table, n.clock.Record, force); err != nil {
		n.fatal(fmt.Errorf("%w: %w", ErrDisk, err))
	}
	end := time.Now()
	took := end.Sub(start)
	n.writes.Observe(took, 1)
	if took > slowFlush {
		n.log.Warn("saving is slow: a crash would forget more than the last second", "took", took)
	}
	n.lastSave.Store(end.UnixNano())
}

// Save writes what changed to disk and returns when it is there. Callers who wait
// at the same time share one flush. ErrNoDisk without a data directory, ErrClosed
// after Close; a disk that fails ends the process.
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

// LastSave is when the last flush ended; the zero time: never.
func (n *Node) LastSave() time.Time {
	ns := n.lastSave.Load()
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns)
}

// Close saves and lets go of the data directory. Decisions must have ended: later
// ones are not saved.
func (n *Node) Close() error {
	n.once.Do(func() {
		close(n.stop)
		<-n.stopped
		n.disk.Lock() // a backup or a Clear may have come before that
		defer n.disk.Unlock()
		if n.store != nil {
			n.closeErr = refusal(n.store.Close())
		}
	})
	return n.closeErr
}

// Clear forgets everything but the policies, in memory and on disk.
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

// Now is the time a decision would be stamped with.
func (n *Node) Now() engine.Stamp { return n.clock.Now() }

// Decide carries out a pipeline; see engine.Table.Decide. The error is always nil.
func (n *Node) Decide(ops []engine.Op, out []engine.Decision) error {
	n.table.Decide(n.clock.Now(), ops, out)
	return nil
}

// DecideAtomic carries out ops as one step; see engine.Table.DecideAtomic. The
// error is always nil.
func (n *Node) DecideAtomic(ops []engine.Op, out []engine.Decision) error {
	n.table.DecideAtomic(n.clock.Now(), ops, out)
	return nil
}

// Inspect describes a key; see engine.Table.Inspect.
func (n *Node) Inspect(key []byte) (engine.Info, bool) { return n.table.Inspect(n.clock.Now(), key) }

// Len counts the keys that are not idle.
func (n *Node) Len() int64 { return n.table.Len(n.clock.Now()) }

// Scan visits keys; see engine.Table.Scan.
func (n *Node) Scan(cursor uint64, count int, visit func(key []byte, a engine.Algorithm)) uint64 {
	return n.table.Scan(n.clock.Now(), cursor, count, visit)
}

// RandomKey returns some key that is not idle, or nil.
func (n *Node) RandomKey() []byte { return n.table.RandomKey(n.clock.Now(), rand.Uint64()) }

// BlocksEverywhere lists what is blocked everywhere; see engine.Table.BlocksEverywhere.
func (n *Node) BlocksEverywhere() []string { return n.table.BlocksEverywhere(n.clock.Now()) }

// Top returns the heaviest keys; see engine.Table.Top.
func (n *Node) Top(v engine.Verdict, most int) []engine.Heavy {
	return n.table.Top(n.clock.Now(), v, most)
}

// Policies returns the policies in force.
func (n *Node) Policies() *engine.Policies { return n.table.Policies() }

// Stats describes the table.
func (n *Node) Stats() engine.Stats { return n.table.Stats(n.clock.Now()) }

// Advance moves a test clock forward by d; false when the clock is a real one.
func (n *Node) Advance(d time.Duration) bool { return n.clock.Advance(d) }
