package raftstore

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/latency"
)

// logStore is what the Raft library keeps its log and its promises in.
type logStore interface {
	raft.LogStore
	raft.StableStore
}

// guardedLog ends the process at the first write that fails, and lets the watchdog
// see one that hangs. After a failed write the library's idea of the last entry is
// wrong, and a leader whose disk hangs goes on sending heartbeats, so that nobody
// else is elected (hashicorp/raft issues 503, 666, 614).
type guardedLog struct {
	logStore
	fatal  func(error)
	writes latency.Histogram // of entries

	mu    sync.Mutex
	since map[string]time.Time // writes under way, by name
}

func guard(store logStore, fatal func(error)) *guardedLog {
	return &guardedLog{logStore: store, fatal: fatal, since: map[string]time.Time{}}
}

// IsMonotonic passes on that the log has no gaps.
func (g *guardedLog) IsMonotonic() bool {
	m, ok := g.logStore.(raft.MonotonicLogStore)
	return ok && m.IsMonotonic()
}

func (g *guardedLog) watched(what string, write func() error) error {
	g.mark(what, time.Now())
	defer g.mark(what, time.Time{})
	if err := write(); err != nil {
		g.fatal(fmt.Errorf("%w (%s): %w", ErrLogFailed, what, err))
		return err
	}
	return nil
}

func (g *guardedLog) mark(what string, since time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if since.IsZero() {
		delete(g.since, what)
	} else {
		g.since[what] = since
	}
}

// hung returns the write that has taken longer than limit, if there is one.
func (g *guardedLog) hung(limit time.Duration) (what string, yes bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for what, since := range g.since {
		if time.Since(since) > limit {
			return what, true
		}
	}
	return "", false
}

func (g *guardedLog) StoreLog(l *raft.Log) error { return g.StoreLogs([]*raft.Log{l}) }

func (g *guardedLog) StoreLogs(ls []*raft.Log) error {
	start := time.Now()
	defer func() { g.writes.Observe(time.Since(start), 1) }()
	return g.watched("store entries", func() error { return g.logStore.StoreLogs(ls) })
}

func (g *guardedLog) DeleteRange(low, high uint64) error {
	return g.watched("delete entries", func() error { return g.logStore.DeleteRange(low, high) })
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
		g.fatal(fmt.Errorf("%w (read entry %d): %w", ErrLogFailed, index, err))
	}
	return err
}
