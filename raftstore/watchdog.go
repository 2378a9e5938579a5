package raftstore

import (
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/raftstore/internal/consensus"
	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/internal/fsm"
	"github.com/weir-project/weir/raftstore/internal/raftlog"
	"github.com/weir-project/weir/raftstore/internal/timers"
)

const (
	// hungAfter is how long a write to the log may take before the node gives up.
	hungAfter = 5 * time.Second
)

// watchdog ends the process of a node that cannot go on.
type watchdog struct {
	*host
	raft       *consensus.Raft
	machine    *fsm.FSM
	logs       *raftlog.Log
	leadership *leadership
}

// watch acts when the Raft library is stuck in one of the ways it is known for.
// Waiting does not mend them: a restart does.
func (w *watchdog) watch() {
	tick := time.NewTicker(timers.HousekeepEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-w.stop:
			return
		}
		w.logs.Awake.Tick()
		w.endIfStuck()
	}
}

// endIfStuck ends the process of a node that cannot go on. A node that is closing looks
// like one that was removed, and ends by itself.
func (w *watchdog) endIfStuck() {
	if err := w.stuck(); err != nil && !w.closing() {
		w.fatal(err)
	}
}

// stuck says why this node cannot go on; nil: it can.
func (w *watchdog) stuck() error {
	if what, yes := w.logs.Hung(hungAfter); yes {
		return fmt.Errorf("%w: %s has taken more than %v; is the disk hung?", failure.ErrStuck, what, hungAfter)
	}
	if w.removed() {
		return failure.ErrRemoved
	}
	if w.leadership.handover.stuck(4 * w.electionTimeout()) {
		return fmt.Errorf("%w: a handover of leadership did not end (hashicorp/raft issue 696)", failure.ErrStuck)
	}
	return nil
}

// removed reports whether the cluster has gone on without this node. A node that
// was cut off when that happened hears it from the others.
func (w *watchdog) removed() bool {
	if w.raft.State() == raft.Shutdown {
		return true
	}
	c := w.machine.Committed.Load()
	if c == nil {
		return false
	}
	if consensus.ServerOf(c.Servers, w.options.NodeID) != nil {
		if err := w.identity.MarkJoined(c.Index); err != nil {
			w.fatal(err)
		}
		return w.peers.without(w.options.NodeID, c.Index)
	}
	return w.identity.JoinedBefore(c.Index)
}
