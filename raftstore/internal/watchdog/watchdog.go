package watchdog

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

// Watchdog ends the process of a node that cannot continue.
type Watchdog struct{ c Config }

// Config has what a Watchdog needs.
type Config struct {
	Self      string // the id of this node
	Heartbeat time.Duration
	Raft      Raft
	// Committed returns the newest committed configuration, or nil.
	Committed func() *fsm.Configuration
	Writes    Writes
	Handover  Handover
	Identity  Identity
	Peers     Peers
	Closing   func() bool // the node closes
	Fatal     func(error) // ends the process
}

// Raft tells a Watchdog about the Raft library.
type Raft interface {
	State() raft.RaftState
	CurrentTerm() uint64
	LastIndex() uint64
	// Server returns a member by its id, or nil.
	Server(id string) *raft.Server
}

// Writes tells a Watchdog about writes to the log.
type Writes interface {
	// Tick must be called every timers.HousekeepEvery.
	Tick()
	// Hung returns the write that takes longer than a limit.
	Hung(limit time.Duration) (what string, yes bool)
}

// Handover tells a Watchdog about transfers of leadership.
type Handover interface {
	// Stuck reports whether one of this term has not ended for longer than a limit.
	Stuck(limit time.Duration, term uint64) bool
}

// Identity is what the directory of this node says about its membership.
type Identity interface {
	MarkJoined(index uint64) error
	JoinedBefore(index uint64) bool
	JoinedSince() (index uint64, joined bool)
}

// Peers tells a Watchdog about the other nodes.
type Peers interface {
	// RemovedSince reports whether a member knows a configuration, newer than an entry, without a node.
	RemovedSince(id string, index uint64) bool
}

// New returns a Watchdog.
func New(c Config) *Watchdog { return &Watchdog{c} }

// Check is called every timers.HousekeepEvery. It ends the process of a node that cannot continue. Only a restart
// resolves the known ways in which the Raft library can be stuck.
func (w *Watchdog) Check() {
	w.c.Writes.Tick()
	w.EndIfStuck()
}

// EndIfStuck ends the process of a node that cannot continue. A node that is closing looks like a removed node, and
// ends by itself.
func (w *Watchdog) EndIfStuck() {
	if err := w.stuck(); err != nil && !w.c.Closing() {
		w.c.Fatal(err)
	}
}

// stuck returns the reason why this node cannot continue, or nil.
func (w *Watchdog) stuck() error {
	if what, yes := w.c.Writes.Hung(raftlog.HungAfter); yes {
		return fmt.Errorf("%w: %s has taken more than %v; is the disk hung?", failure.ErrStuck, what, raftlog.HungAfter)
	}
	if w.removed() {
		return failure.ErrRemoved
	}
	limit := 4 * timers.ElectionTimeout(w.c.Heartbeat)
	if w.c.Raft.State() == raft.Leader && w.c.Handover.Stuck(limit, w.c.Raft.CurrentTerm()) {
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
	if w.c.Raft.State() == raft.Shutdown {
		return true
	}
	c := w.c.Committed()
	switch {
	case c != nil && consensus.ServerOf(c.Servers, w.c.Self) != nil:
		if err := w.c.Identity.MarkJoined(c.Index); err != nil {
			w.c.Fatal(err)
		}
		return w.c.Peers.RemovedSince(w.c.Self, c.Index)
	case c != nil && w.c.Identity.JoinedBefore(c.Index):
		return true
	}
	at, joined := w.c.Identity.JoinedSince()
	if !joined && w.c.Raft.Server(w.c.Self) != nil {
		at, joined = w.c.Raft.LastIndex(), true
	}
	return joined && w.c.Peers.RemovedSince(w.c.Self, at)
}
