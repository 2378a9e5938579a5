package raftlog

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/latency"
	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/internal/timers"
)

// HungAfter is the longest time that a write to the log may take before the node stops.
const HungAfter = 5 * time.Second

// Store is the storage of the Raft library for the log, the term and the vote.
type Store interface {
	raft.LogStore
	raft.StableStore
}

// Log ends the process at the first failed write, because the library's last index is wrong afterwards. It lets the
// watchdog detect a hung write.
type Log struct {
	Store
	fatal  func(error)
	Writes latency.Histogram // of entries
	// NewestImage returns the index of the last entry in the newest image, or 0.
	NewestImage func() uint64
	Times       Times

	opened  time.Time
	Storing atomic.Int64 // when the append under way began, in nanoseconds since opened; 0: no append is

	awake
	mu    sync.Mutex
	since map[string]time.Duration // now() when each write under way began, by name
}

// Guard returns a Log on store. It calls fatal at the first failed write.
func Guard(store Store, fatal func(error)) *Log {
	return &Log{Store: store, fatal: fatal, opened: time.Now(), since: map[string]time.Duration{},
		NewestImage: func() uint64 { return 0 }}
}

// IsMonotonic reports whether the store requires a log without gaps.
func (g *Log) IsMonotonic() bool {
	m, ok := g.Store.(raft.MonotonicLogStore)
	return ok && m.IsMonotonic()
}

func (g *Log) watched(what string, write func() error) error {
	g.begin(what)
	defer g.end(what)
	if err := write(); err != nil {
		g.fatal(fmt.Errorf("%w (%s): %w", failure.ErrLogFailed, what, err))
		return err
	}
	return nil
}

func (g *Log) begin(what string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.since[what] = g.now()
}

func (g *Log) end(what string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.since, what)
}

// StuckFor returns how long the append under way has taken, or 0.
func (g *Log) StuckFor() time.Duration {
	if since := g.Storing.Load(); since != 0 {
		return time.Since(g.opened) - time.Duration(since)
	}
	return 0
}

// Hung returns the name of a write that has taken longer than limit, not counting pauses of this process. yes is false
// if no write has.
func (g *Log) Hung(limit time.Duration) (what string, yes bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for what, since := range g.since {
		if g.now()-since > limit {
			return what, true
		}
	}
	return "", false
}

func (g *Log) StoreLog(l *raft.Log) error { return g.StoreLogs([]*raft.Log{l}) }

func (g *Log) StoreLogs(ls []*raft.Log) error {
	start := time.Now()
	g.Storing.Store(max(int64(start.Sub(g.opened)), 1))
	defer func() {
		g.Storing.Store(0)
		took := time.Since(start)
		g.Writes.Observe(took, 1)
		g.Times.Add(took)
	}()
	return g.watched("store entries", func() error { return g.Store.StoreLogs(ls) })
}

// DeleteRange removes entries. If the range begins inside the newest image and ends after that image, the Raft library
// has installed the image and needs a restart: see errLogReplaced.
func (g *Log) DeleteRange(low, high uint64) error {
	err := g.watched("delete entries", func() error { return g.Store.DeleteRange(low, high) })
	if image := g.NewestImage(); err == nil && low <= image && image < high {
		g.fatal(fmt.Errorf("%w: %w (image of entry %d, log up to entry %d)", failure.ErrStuck,
			errLogReplaced, image, high))
	}
	return err
}

func (g *Log) Set(key, value []byte) error {
	return g.watched("store a vote or term", func() error { return g.Store.Set(key, value) })
}

func (g *Log) SetUint64(key []byte, value uint64) error {
	return g.watched("store a vote or term", func() error { return g.Store.SetUint64(key, value) })
}

// GetLog reads an entry. Any error except raft.ErrLogNotFound ends the process.
func (g *Log) GetLog(index uint64, l *raft.Log) error {
	err := g.Store.GetLog(index, l)
	if err != nil && !errors.Is(err, raft.ErrLogNotFound) {
		g.fatal(fmt.Errorf("%w (read entry %d): %w", failure.ErrLogFailed, index, err))
	}
	return err
}

// awake measures how long this process has run, by the ticks of its watchdog. A pause of
// the process, or of its virtual machine, counts as at most two ticks, so that a pause does
// not look like a hung disk.
type awake struct {
	ran  atomic.Int64 // nanoseconds
	last time.Time    // of the last tick; only the watchdog uses it
}

// Tick counts the time since the last tick.
func (a *awake) Tick() {
	now := time.Now()
	if !a.last.IsZero() {
		a.ran.Add(int64(min(now.Sub(a.last), 2*timers.HousekeepEvery)))
	}
	a.last = now
}

func (a *awake) now() time.Duration { return time.Duration(a.ran.Load()) }

// EmptyLog removes all entries of a log, if it has any.
func EmptyLog(log raft.LogStore) error {
	first, err := log.FirstIndex()
	if err != nil {
		return err
	}
	last, err := log.LastIndex()
	if err != nil || last == 0 {
		return err
	}
	return log.DeleteRange(first, last)
}

// The keys under which the Raft library stores the term, and the term and the candidate of the last vote.
var (
	KeyTerm          = []byte("CurrentTerm")
	KeyVoteTerm      = []byte("LastVoteTerm")
	KeyVoteCandidate = []byte("LastVoteCand")
)

// errLogReplaced ends the process after an image was installed over a log with conflicting later entries. The Raft
// library still takes the last removed entry for the end of its log. It would refuse all later entries, or panic
// (seen in the simulation).
var errLogReplaced = errors.New(
	"an image of the leader has replaced the end of the log, and the Raft library needs a restart to read it")
