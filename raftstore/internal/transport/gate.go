package transport

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/weir-project/weir/raftstore/internal/raftlog"
)

const (
	// GatePause is how often a withheld heartbeat checks whether the append has ended.
	GatePause = 2 * time.Millisecond
)

// Gate delays a leader's heartbeats while an append to its own log is stuck. The Raft library sends heartbeats from
// separate goroutines, so a leader with a hung disk prevents its followers from electing another (hashicorp/raft
// issues 503, 666, 614). The delay is safe, because Raft allows any message to arrive late.
type Gate struct {
	Logs  *raftlog.Log
	Limit time.Duration // an append that takes longer is stuck
	Stop  <-chan struct{}
	Log   *slog.Logger
	told  atomic.Int64 // raftlog.Log.Storing of the append that was logged last
}

// Wait returns when no append is stuck, or the node closes.
func (g *Gate) Wait() {
	if g.Logs.StuckFor() <= g.Limit {
		return
	}
	g.tell()
	poll := time.NewTicker(GatePause)
	defer poll.Stop()
	for g.Logs.StuckFor() > g.Limit {
		select {
		case <-poll.C:
		case <-g.Stop:
			return
		}
	}
}

// tell logs that an append is stuck, once for each append.
func (g *Gate) tell() {
	append := g.Logs.Storing.Load()
	if append != 0 && g.told.Swap(append) != append {
		g.Log.Warn("the disk has not finished a write to the log; until then this leader sends no heartbeats, so "+
			"that another node can be elected", "waiting", g.Logs.StuckFor())
	}
}
