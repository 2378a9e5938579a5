package raftstore

import (
	"math/rand/v2"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/engine/hashslot"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore/internal/membership"
	"github.com/weir-project/weir/raftstore/wire"
)

// A read never advances the table's time. Entries in flight carry earlier stamps, and the tables of the other nodes do
// not see the read. Reads without side effects use LookStamp, and all others use the stamp of the last entry.

// Inspect describes a key; see engine.Table.Inspect.
func (n *Node) Inspect(key []byte) (engine.Info, bool) {
	return n.fsm.Table.Load().Inspect(n.reads.LookStamp(), key)
}

// Len returns the number of keys of a database that are not idle at the time of the last entry, which is at
// most about a second old. It removes idle keys, so it cannot use a later time.
func (n *Node) Len(database int) int64 {
	return n.fsm.Table.Load().LenWithin(n.fsm.LastStamp(), database, n.owned())
}

// owned returns the slots that the group owns.
func (n *Node) owned() hashslot.Range {
	s, _ := n.fsm.LastArrival()
	return s.Founding.Owned()
}

// Scan visits keys; see engine.Table.Scan.
func (n *Node) Scan(cursor uint64, count int, visit func(key []byte, a engine.Algorithm)) uint64 {
	return n.fsm.Table.Load().Scan(n.reads.LookStamp(), cursor, count, visit)
}

// RandomKey returns a random key of a database that is not idle, or nil.
func (n *Node) RandomKey(database int) []byte {
	return n.fsm.Table.Load().RandomKey(n.reads.LookStamp(), rand.Uint64(), database)
}

// Holds lists the open holds under a policy and a key; see engine.Table.Holds.
func (n *Node) Holds(policy, key []byte, cursor uint64, count int) ([]engine.OpenHold, uint64) {
	return n.fsm.Table.Load().Holds(n.reads.LookStamp(), policy, key, cursor, count)
}

// BlocksEverywhere reads the blocks everywhere; see engine.Table.BlocksEverywhere. Their bound is that of the next
// block.
func (n *Node) BlocksEverywhere() engine.BlocksEverywhere {
	b := n.fsm.Table.Load().BlocksEverywhere(n.reads.LookStamp())
	b.Max = max(b.Max, wire.RulesOf(byte(n.format.Agreed.Load())).MaxBlocksEverywhere())
	return b
}

// FromBlock describes the block of an address; see engine.Table.FromBlock.
func (n *Node) FromBlock(key []byte) engine.FromBlock {
	return n.fsm.Table.Load().FromBlock(n.reads.LookStamp(), key)
}

// SharedVersion returns the version of the shared items; see engine.SharedItems.
func (n *Node) SharedVersion() uint64 { return n.fsm.Table.Load().SharedVersion() }

// Shared returns the policies and the blocks everywhere at the last entry applied here.
func (n *Node) Shared() *engine.SharedItems {
	return n.fsm.Table.Load().Shared(n.reads.LookStamp())
}

// Top returns the heaviest keys that this node has decided or applied; see engine.Table.Top. Only the leader knows
// the denials that need no log entry.
func (n *Node) Top(v engine.Verdict, most int) []engine.Heavy {
	return n.fsm.Table.Load().Top(n.fsm.LastStamp(), v, most)
}

// Policies returns the policies in force at the last entry applied here.
func (n *Node) Policies() *engine.Policies { return n.fsm.Table.Load().Policies() }

// Events reads the log of events; see engine.Table.Events.
func (n *Node) Events(_ int, after uint64, most int) ([]engine.Event, engine.EventsPosition, <-chan struct{}) {
	return n.fsm.Table.Load().Events(after, most)
}

// EventsBefore returns the cursor of the newest event before a time; see engine.Table.EventsBefore.
func (n *Node) EventsBefore(_ int, atMs int64) uint64 { return n.fsm.Table.Load().EventsBefore(atMs) }

// Stats returns the statistics of this node's table.
func (n *Node) Stats() engine.Stats {
	s := n.fsm.Table.Load().StatsWithin(n.fsm.LastStamp(), n.owned())
	s.MaxMemoryBytes = n.own.Options.Table.MaxMemoryBytes
	return s
}

// Digest returns the last index applied and a hash of the whole state at it, which is the same on every node. It
// reads the whole table, and blocks this node meanwhile.
func (n *Node) Digest() (index, hash uint64) {
	n.fsm.Whole.Lock()
	defer n.fsm.Whole.Unlock()
	index, history := n.fsm.LastHistory()
	return index, history ^ n.fsm.Table.Load().StateHash(n.fsm.LastStamp())
}

// Now returns approximately the stamp that the leader would give a decision.
func (n *Node) Now() engine.Stamp {
	if r := n.leadership.Current.Load(); r != nil {
		return r.Clock.Now()
	}
	at, arrivedRawNs := n.fsm.Last()
	if !n.own.Options.TestClock && at.NowNs != 0 {
		at.NowNs += max(n.own.Options.Source.MonotonicNs()-arrivedRawNs, 0)
	}
	return at
}

// Advance moves the cluster's test clock forward by d. It returns false if the cluster has a real clock or no leader
// moved it.
func (n *Node) Advance(d time.Duration) bool {
	advance := membership.Order{What: "advance", MoveNs: int64(d)}
	return n.own.Options.TestClock && n.membership.Give(advance) == nil
}

// Topology describes the cluster. It is cheap: the descriptions of the nodes are refreshed a few times a second, and
// the other fields are read at the call.
func (n *Node) Topology() *limiter.Topology {
	index, _ := n.fsm.LastHistory()
	_, leader := n.raft.LeaderWithID()
	t := &limiter.Topology{
		ClusterID: n.own.Identity.Self().ClusterID, Self: n.own.Options.NodeID, Leader: string(leader),
		Term: n.raft.CurrentTerm(), AppliedIndex: index, CommitIndex: n.raft.CommitIndex(),
		Format: byte(n.format.Agreed.Load()), Nodes: *n.own.Peers.Members.Load(),
	}
	if t.Leader == t.Self && n.leadership.Current.Load() == nil {
		t.Leader = "" // elected, but not serving yet
	}
	t.LastLeader = n.lastLeader(t.Leader)
	return t
}

// LookAtMembers brings the members of Topology up to date. A node does it by itself every 250 ms.
func (n *Node) LookAtMembers() { n.own.Peers.LookAtMembers() }

// lastLeader returns the last known leader, and counts the changes.
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
