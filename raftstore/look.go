package raftstore

import (
	"math/rand/v2"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore/internal/membership"
)

// A read never advances the table's time: entries in flight carry earlier stamps, and the
// other nodes have not read. Reads that leave no trace judge by lookStamp, all others by
// the stamp of the last entry.

// Inspect describes a key; see engine.Table.Inspect.
func (n *Node) Inspect(key []byte) (engine.Info, bool) {
	return n.group.fsm.Table.Load().Inspect(n.group.reads.LookStamp(), key)
}

// Len counts the keys that are not idle at the time of the last entry, which is at most
// about a second old. It removes idle keys, so it cannot judge by a later time.
func (n *Node) Len() int64 { return n.group.fsm.Table.Load().Len(n.group.fsm.LastStamp()) }

// Scan visits keys; see engine.Table.Scan.
func (n *Node) Scan(cursor uint64, count int, visit func(key []byte, a engine.Algorithm)) uint64 {
	return n.group.fsm.Table.Load().Scan(n.group.reads.LookStamp(), cursor, count, visit)
}

// RandomKey returns some key that is not idle, or nil.
func (n *Node) RandomKey() []byte {
	return n.group.fsm.Table.Load().RandomKey(n.group.reads.LookStamp(), rand.Uint64())
}

// BlocksEverywhere lists what is blocked everywhere; see engine.Table.BlocksEverywhere.
func (n *Node) BlocksEverywhere() []string {
	return n.group.fsm.Table.Load().BlocksEverywhere(n.group.reads.LookStamp())
}

// Top returns the heaviest keys of what this node has decided or applied; see
// engine.Table.Top. Only the leader knows of the denials that need no log.
func (n *Node) Top(v engine.Verdict, most int) []engine.Heavy {
	return n.group.fsm.Table.Load().Top(n.group.fsm.LastStamp(), v, most)
}

// Policies returns the policies in force at the last entry applied here.
func (n *Node) Policies() *engine.Policies { return n.group.fsm.Table.Load().Policies() }

// Stats describes this node's table.
func (n *Node) Stats() engine.Stats {
	s := n.group.fsm.Table.Load().Stats(n.group.fsm.LastStamp())
	s.MaxMemoryBytes = n.host.MaxMemory
	return s
}

// Digest returns the last index applied and a hash of the whole state at it, the
// same on every node. It takes as long as reading the whole table, and holds up
// this node meanwhile.
func (n *Node) Digest() (index, hash uint64) {
	n.group.fsm.Whole.Lock()
	defer n.group.fsm.Whole.Unlock()
	index, history := n.group.fsm.Check()
	return index, history ^ n.group.fsm.Table.Load().StateHash(n.group.fsm.LastStamp())
}

// Now is about the time the leader would stamp a decision with.
func (n *Node) Now() engine.Stamp {
	if r := n.group.leadership.Current.Load(); r != nil {
		return r.Clock.Now()
	}
	at, arrivedRawNs := n.group.fsm.Last()
	if !n.host.TestClock && at.NowNs != 0 {
		at.NowNs += max(n.host.Source.MonotonicNs()-arrivedRawNs, 0)
	}
	return at
}

// Advance moves the cluster's test clock forward by d; false when its clock is a
// real one or there is no leader to move it.
func (n *Node) Advance(d time.Duration) bool {
	return n.host.TestClock && n.group.membership.Give(membership.Order{What: "advance", MoveNs: int64(d)}) == nil
}

// Topology describes the cluster. It costs little: the nodes are looked at a few
// times a second, everything else is asked now.
func (n *Node) Topology() *limiter.Topology {
	index, _ := n.group.fsm.Check()
	_, leader := n.group.raft.LeaderWithID()
	t := &limiter.Topology{
		ClusterID: n.host.Identity.Self().ClusterID, Self: n.host.Options.NodeID, Leader: string(leader),
		Term: n.group.raft.CurrentTerm(), AppliedIndex: index, CommitIndex: n.group.raft.CommitIndex(),
		Format: byte(n.group.format.Agreed.Load()), Nodes: *n.host.Peers.Members.Load(),
	}
	if t.Leader == t.Self && n.group.leadership.Current.Load() == nil {
		t.Leader = "" // elected, but not serving yet
	}
	t.LastLeader = n.lastLeader(t.Leader)
	return t
}

// lastLeader remembers the last leader that was known, and counts when it is another.
func (n *Node) lastLeader(now string) string {
	last := n.knownLeader.Load()
	if now == "" && last == nil {
		return ""
	}
	if now == "" || last != nil && *last == now {
		return *last
	}
	if n.knownLeader.CompareAndSwap(last, &now) && last != nil {
		n.leaderChanges.Add(1)
	}
	return now
}
