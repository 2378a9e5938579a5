package watchdog

import (
	"fmt"

	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/raftstore/internal/consensus"
	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/internal/fsm"
	"github.com/weir-project/weir/raftstore/internal/host"
	"github.com/weir-project/weir/raftstore/internal/leadership"
	"github.com/weir-project/weir/raftstore/internal/raftlog"
	"github.com/weir-project/weir/raftstore/internal/timers"
)

// Watchdog ends the process of a node that cannot continue.
type Watchdog struct {
	*host.Host
	Raft       *consensus.Raft
	FSM        *fsm.FSM
	Logs       *raftlog.Log
	Leadership *leadership.Leadership
}

// Check is called every timers.HousekeepEvery. It ends the process of a node that cannot continue. Only a restart
// resolves the known ways in which the Raft library can be stuck.
func (w *Watchdog) Check() {
	w.Logs.Awake.Tick()
	w.EndIfStuck()
}

// EndIfStuck ends the process of a node that cannot continue. A node that is closing looks like a removed node, and
// ends by itself.
func (w *Watchdog) EndIfStuck() {
	if err := w.stuck(); err != nil && !w.Closing() {
		w.Fatal(err)
	}
}

// stuck returns the reason why this node cannot continue, or nil.
func (w *Watchdog) stuck() error {
	if what, yes := w.Logs.Hung(raftlog.HungAfter); yes {
		return fmt.Errorf("%w: %s has taken more than %v; is the disk hung?", failure.ErrStuck, what, raftlog.HungAfter)
	}
	if w.removed() {
		return failure.ErrRemoved
	}
	if w.Raft.State() == raft.Leader && w.Leadership.Handover.Stuck(4*timers.ElectionTimeout(w.Options.Heartbeat)) {
		return fmt.Errorf("%w: a handover of leadership did not end (hashicorp/raft issue 696)", failure.ErrStuck)
	}
	return nil
}

// removed reports whether the cluster has removed this node. A node that was unreachable at its removal learns of the
// removal from the statuses of the other nodes. While this node is a member, removed records that in its identity.
//
// After a restart, this node knows no committed configuration, or that of an image, which may be older than its
// membership. That changes when a leader tells it which entries are committed. But no leader does after its removal.
//
// If this node stopped soon after it joined, its log contains its membership, and its identity does not. Every
// configuration newer than the log is then newer than the membership.
func (w *Watchdog) removed() bool {
	if w.Raft.State() == raft.Shutdown {
		return true
	}
	c := w.FSM.Committed.Load()
	switch {
	case c != nil && consensus.ServerOf(c.Servers, w.Options.NodeID) != nil:
		if err := w.Identity.MarkJoined(c.Index); err != nil {
			w.Fatal(err)
		}
		return w.Peers.RemovedSince(w.Options.NodeID, c.Index)
	case c != nil && w.Identity.JoinedBefore(c.Index):
		return true
	}
	at, joined := w.Identity.JoinedSince()
	if !joined && w.Raft.Server(w.Options.NodeID) != nil {
		at, joined = w.Raft.LastIndex(), true
	}
	return joined && w.Peers.RemovedSince(w.Options.NodeID, at)
}
