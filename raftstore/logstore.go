package raftstore

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/latency"
	"github.com/weir-project/weir/raftstore/internal/failure"
)

// logStore is what the Raft library keeps its log and its promises in.
type logStore interface {
	raft.LogStore
	raft.StableStore
}

// guardedLog ends the process at the first write that fails, and lets the watchdog
// see one that hangs. After a failed write the library's idea of the last entry is
// wrong.
type guardedLog struct {
	logStore
	fatal  func(error)
	writes latency.Histogram // of entries
	// newestImage returns the index of the last entry in the newest image, or 0.
	newestImage func() uint64
	times       appendTimes

	opened  time.Time
	storing atomic.Int64 // when the append under way began, in nanoseconds since opened; 0: none is

	awake awake
	mu    sync.Mutex
	since map[string]time.Duration // awake when each write under way began, by name
}

func guard(store logStore, fatal func(error)) *guardedLog {
	return &guardedLog{logStore: store, fatal: fatal, opened: time.Now(), since: map[string]time.Duration{}, newestImage: func() uint64 { return 0 }}
}

// IsMonotonic passes on that the log has no gaps.
func (g *guardedLog) IsMonotonic() bool {
	m, ok := g.logStore.(raft.MonotonicLogStore)
	return ok && m.IsMonotonic()
}

func (g *guardedLog) watched(what string, write func() error) error {
	g.begin(what)
	defer g.end(what)
	if err := write(); err != nil {
		g.fatal(fmt.Errorf("%w (%s): %w", failure.ErrLogFailed, what, err))
		return err
	}
	return nil
}

func (g *guardedLog) begin(what string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.since[what] = g.awake.now()
}

func (g *guardedLog) end(what string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.since, what)
}

// stuckFor returns how long the append under way has taken, or 0.
func (g *guardedLog) stuckFor() time.Duration {
	if since := g.storing.Load(); since != 0 {
		return time.Since(g.opened) - time.Duration(since)
	}
	return 0
}

// hung returns a write that has taken longer than limit, not counting pauses of this
// process.
func (g *guardedLog) hung(limit time.Duration) (what string, yes bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for what, since := range g.since {
		if g.awake.now()-since > limit {
			return what, true
		}
	}
	return "", false
}

func (g *guardedLog) StoreLog(l *raft.Log) error { return g.StoreLogs([]*raft.Log{l}) }

func (g *guardedLog) StoreLogs(ls []*raft.Log) error {
	start := time.Now()
	g.storing.Store(max(int64(start.Sub(g.opened)), 1))
	defer func() {
		g.storing.Store(0)
		took := time.Since(start)
		g.writes.Observe(took, 1)
		g.times.add(took)
	}()
	return g.watched("store entries", func() error { return g.logStore.StoreLogs(ls) })
}

// DeleteRange removes entries. If the range begins inside the newest image and ends after
// it, the Raft library has installed that image and needs a restart: see errLogReplaced.
func (g *guardedLog) DeleteRange(low, high uint64) error {
	err := g.watched("delete entries", func() error { return g.logStore.DeleteRange(low, high) })
	if image := g.newestImage(); err == nil && low <= image && image < high {
		g.fatal(fmt.Errorf("%w: %w (image of entry %d, log up to entry %d)", failure.ErrStuck, errLogReplaced, image, high))
	}
	return err
}

func (g *guardedLog) Set(key, value []byte) error {
	return g.watched("store a promise", func() error { return g.logStore.Set(key, value) })
}

func (g *guardedLog) SetUint64(key []byte, value uint64) error {
	return g.watched("store a promise", func() error { return g.logStore.SetUint64(key, value) })
}

func (g *guardedLog) GetLog(index uint64, l *raft.Log) error {
	err := g.logStore.GetLog(index, l)
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

// tick counts the time since the last tick.
func (a *awake) tick() {
	now := time.Now()
	if !a.last.IsZero() {
		a.ran.Add(int64(min(now.Sub(a.last), 2*housekeepEvery)))
	}
	a.last = now
}

func (a *awake) now() time.Duration { return time.Duration(a.ran.Load()) }
