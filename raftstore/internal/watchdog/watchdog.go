package watchdog

import (
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/raftstore/internal/consensus"
	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/internal/fsm"
	"github.com/weir-project/weir/raftstore/internal/host"
	"github.com/weir-project/weir/raftstore/internal/leadership"
	"github.com/weir-project/weir/raftstore/internal/raftlog"
	"github.com/weir-project/weir/raftstore/internal/timers"
)

// Watchdog ends the process of a node that cannot go on.
type Watchdog struct {
	*host.Host
	Raft       *consensus.Raft
	FSM        *fsm.FSM
	Logs       *raftlog.Log
	Leadership *leadership.Leadership
}

// Run acts when the Raft library is stuck in one of the ways it is known for.
// Waiting does not mend them: a restart does.
func (w *Watchdog) Run() {
	tick := time.NewTicker(timers.HousekeepEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-w.Stop:
			return
		}
		w.Logs.Awake.Tick()
		w.EndIfStuck()
	}
}

// EndIfStuck ends the process of a node that cannot go on. A node that is closing looks
// like one that was removed, and ends by itself.
func (w *Watchdog) EndIfStuck() {
	if err := w.stuck(); err != nil && !w.Closing() {
		w.Fatal(err)
	}
}

// stuck says why this node cannot go on; nil: it can.
func (w *Watchdog) stuck() error {
	if what, yes := w.Logs.Hung(raftlog.HungAfter); yes {
		return fmt.Errorf("%w: %s has taken more than %v; is the disk hung?", failure.ErrStuck, what, raftlog.HungAfter)
	}
	if w.removed() {
		return failure.ErrRemoved
	}
	if w.Leadership.Handover.Stuck(4 * w.ElectionTimeout()) {
		return fmt.Errorf("%w: a handover of leadership did not end (hashicorp/raft issue 696)", failure.ErrStuck)
	}
	return nil
}

// removed reports whether the cluster has gone on without this node. A node that
// was cut off when that happened hears it from the others.
func (w *Watchdog) removed() bool {
	if w.Raft.State() == raft.Shutdown {
		return true
	}
	c := w.FSM.Committed.Load()
	if c == nil {
		return false
	}
	if consensus.ServerOf(c.Servers, w.Options.NodeID) != nil {
		if err := w.Identity.MarkJoined(c.Index); err != nil {
			w.Fatal(err)
		}
		return w.Peers.Without(w.Options.NodeID, c.Index)
	}
	return w.Identity.JoinedBefore(c.Index)
}
