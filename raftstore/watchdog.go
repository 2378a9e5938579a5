package raftstore

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// watch acts when the Raft library is stuck in one of the ways it is known for.
// Waiting does not mend them: a restart does, or another leader.
func (n *Node) watch() {
	tick := time.NewTicker(housekeepEvery)
	defer tick.Stop()
	lagging := stalled{limit: n.options.StalledAfter}
	for {
		select {
		case <-tick.C:
		case <-n.stop:
			return
		}
		n.stepAside(&lagging)
		if what, yes := n.logs.hung(hungAfter); yes {
			n.fatal(fmt.Errorf("%w: %s has taken more than %v; is the disk hung?", ErrStuck, what, hungAfter))
		}
		if n.removed() && !n.closing() {
			n.fatal(ErrRemoved)
		}
		if n.handover.stuck(4*n.electionTimeout()) && !n.closing() {
			n.fatal(fmt.Errorf("%w: a handover of leadership did not end (hashicorp/raft issue 696)", ErrStuck))
		}
	}
}

// removed reports whether the cluster has gone on without this node. A node that
// was cut off when that happened hears it from the others.
func (n *Node) removed() bool {
	if n.raft.State() == raft.Shutdown {
		return true
	}
	c := n.machine.committed.Load()
	if c == nil {
		return false
	}
	if serverOf(c.servers, n.options.NodeID) != nil {
		n.markJoined(c.index)
		return n.peers.without(n.options.NodeID, c.index)
	}
	return n.joinedBefore(c.index)
}

// handoverWatch notices a leader that refuses every entry because it believes that
// it is handing leadership over. An idle leader proposes a tick every second, so
// there is always something to be refused.
type handoverWatch struct{ since atomic.Int64 } // Unix nanoseconds of the first refusal in a row; 0: none

// saw takes note of what the Raft library said of an entry.
func (h *handoverWatch) saw(err error) {
	if errors.Is(err, raft.ErrLeadershipTransferInProgress) {
		h.since.CompareAndSwap(0, time.Now().UnixNano())
	} else {
		h.since.Store(0)
	}
}

func (h *handoverWatch) stuck(limit time.Duration) bool {
	since := h.since.Load()
	return since != 0 && time.Since(time.Unix(0, since)) > limit
}
