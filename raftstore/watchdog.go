package raftstore

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// watch acts when the Raft library is stuck in one of the ways it is known for.
// Waiting does not mend them: a restart does.
func (n *Node) watch() {
	tick := time.NewTicker(housekeepEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-n.stop:
			return
		}
		n.logs.awake.tick()
		n.endIfStuck()
	}
}

// endIfStuck ends the process of a node that cannot go on. A node that is closing looks
// like one that was removed, and ends by itself.
func (n *Node) endIfStuck() {
	if err := n.stuck(); err != nil && !n.closing() {
		n.fatal(err)
	}
}

// stuck says why this node cannot go on; nil: it can.
func (n *Node) stuck() error {
	if what, yes := n.logs.hung(hungAfter); yes {
		return fmt.Errorf("%w: %s has taken more than %v; is the disk hung?", ErrStuck, what, hungAfter)
	}
	if n.removed() {
		return ErrRemoved
	}
	if n.handover.stuck(4 * n.electionTimeout()) {
		return fmt.Errorf("%w: a handover of leadership did not end (hashicorp/raft issue 696)", ErrStuck)
	}
	return nil
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

// handoverWatch notices a leader that refuses every entry because it believes that
// it is handing leadership over. An idle leader proposes a tick every second, so
// there is always something to be refused.
type handoverWatch struct{ since atomic.Pointer[time.Time] } // of the first refusal in a row, with its monotonic reading; nil: none

// saw takes note of what the Raft library said of an entry.
func (h *handoverWatch) saw(err error) {
	if errors.Is(err, raft.ErrLeadershipTransferInProgress) {
		now := time.Now()
		h.since.CompareAndSwap(nil, &now)
	} else if h.since.Load() != nil {
		h.since.Store(nil)
	}
}

func (h *handoverWatch) stuck(limit time.Duration) bool {
	since := h.since.Load()
	return since != nil && time.Since(*since) > limit
}
