package raftstore

import (
	"log/slog"
	"sync/atomic"
	"time"
)

const (
	// gatePause is how often a withheld heartbeat checks whether the append has ended.
	gatePause = 2 * time.Millisecond
)

// gate holds a leader's heartbeats back while an append to its own log is stuck. The
// Raft library sends heartbeats from goroutines of their own, so a leader whose disk
// hangs keeps its followers from electing another one (hashicorp/raft issues 503, 666,
// 614). Raft allows any message to come late.
type gate struct {
	logs  *guardedLog
	limit time.Duration // an append that takes longer is stuck
	stop  <-chan struct{}
	log   *slog.Logger
	told  atomic.Int64 // guardedLog.storing of the append that was logged last
}

// wait returns when no append is stuck, or the node closes.
func (g *gate) wait() {
	if g.logs.stuckFor() <= g.limit {
		return
	}
	g.tell()
	poll := time.NewTicker(gatePause)
	defer poll.Stop()
	for g.logs.stuckFor() > g.limit {
		select {
		case <-poll.C:
		case <-g.stop:
			return
		}
	}
}

// tell logs that an append is stuck, once for each append.
func (g *gate) tell() {
	append := g.logs.storing.Load()
	if append != 0 && g.told.Swap(append) != append {
		g.log.Warn("the disk has not finished a write to the log; this leader withholds its heartbeats until it has, so that another node can be elected", "waiting", g.logs.stuckFor())
	}
}
