package raftstore

import (
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/raftstore/wire"
)

// A read never advances the table's time: entries in flight carry earlier stamps, and the
// other nodes have not read. Reads that leave no trace judge by lookStamp, all others by
// the stamp of the last entry.

func (n *Node) lastStamp() engine.Stamp {
	at, _ := n.machine.last()
	return at
}

// lookStamp returns the time by which reads judge: the last entry's, or the later one that
// came with a read index. It ignores a time of an earlier term, because the clock of the
// new leader may be behind it.
func (n *Node) lookStamp() engine.Stamp {
	at, told := n.lastStamp(), n.readTime.Load()
	if told != nil && told.at.NowNs > at.NowNs && told.term == n.raft.CurrentTerm() {
		return told.at
	}
	return at
}

// Inspect describes a key; see engine.Table.Inspect.
func (n *Node) Inspect(key []byte) (engine.Info, bool) {
	return n.machine.table.Load().Inspect(n.lookStamp(), key)
}

// Len counts the keys that are not idle at the time of the last entry, which is at most
// about a second old. It removes idle keys, so it cannot judge by a later time.
func (n *Node) Len() int64 { return n.machine.table.Load().Len(n.lastStamp()) }

// Scan visits keys; see engine.Table.Scan.
func (n *Node) Scan(cursor uint64, count int, visit func(key []byte, a engine.Algorithm)) uint64 {
	return n.machine.table.Load().Scan(n.lookStamp(), cursor, count, visit)
}

// RandomKey returns some key that is not idle, or nil.
func (n *Node) RandomKey() []byte {
	return n.machine.table.Load().RandomKey(n.lookStamp(), rand.Uint64())
}

// BlocksEverywhere lists what is blocked everywhere; see engine.Table.BlocksEverywhere.
func (n *Node) BlocksEverywhere() []string {
	return n.machine.table.Load().BlocksEverywhere(n.lookStamp())
}

// Top returns the heaviest keys of what this node has decided or applied; see
// engine.Table.Top. Only the leader knows of the denials that need no log.
func (n *Node) Top(v engine.Verdict, most int) []engine.Heavy {
	return n.machine.table.Load().Top(n.lastStamp(), v, most)
}

// Policies returns the policies in force at the last entry applied here.
func (n *Node) Policies() *engine.Policies { return n.machine.table.Load().Policies() }

// Stats describes this node's table.
func (n *Node) Stats() engine.Stats {
	s := n.machine.table.Load().Stats(n.lastStamp())
	s.MaxMemoryBytes = n.maxMemory
	return s
}

// Digest returns the last index applied and a hash of the whole state at it, the
// same on every node. It takes as long as reading the whole table, and holds up
// this node meanwhile.
func (n *Node) Digest() (index, hash uint64) {
	n.machine.whole.Lock()
	defer n.machine.whole.Unlock()
	index, history := n.machine.check()
	return index, history ^ n.machine.table.Load().StateHash(n.lastStamp())
}

// Now is about the time the leader would stamp a decision with.
func (n *Node) Now() engine.Stamp {
	if r := n.reign.Load(); r != nil {
		return r.clock.Now()
	}
	at, arrivedRawNs := n.machine.last()
	if !n.testClock && at.NowNs != 0 {
		at.NowNs += max(n.source.MonotonicNs()-arrivedRawNs, 0)
	}
	return at
}

// Advance moves the cluster's test clock forward by d; false when its clock is a
// real one or there is no leader to move it.
func (n *Node) Advance(d time.Duration) bool {
	return n.testClock && n.give(order{What: "advance", MoveNs: int64(d)}) == nil
}

// advanceHere moves the test clock of this leader to where a Tick has moved the log's time.
// Only one may be under way: the next goes on from the last entry.
func (n *Node) advanceHere(ns int64) error {
	n.advancing.Lock()
	defer n.advancing.Unlock()
	r := n.reign.Load()
	if r == nil {
		return ErrNotLeader
	}
	b, err := n.queue.moving(wire.Tick, ns)
	if err != nil {
		return err
	}
	if <-b.done; b.err == nil {
		r.clock.Advance(time.Duration(n.lastStamp().NowNs - r.clock.Now().NowNs))
	}
	return b.err
}

// Member is one node as this one sees it.
type Member struct {
	ID, ClientAddr, RaftAddr string
	Voter, Up                bool
	AppliedIndex             uint64
	LastHeard                time.Duration // ago
	LagEntries               uint64        // committed, as far as was known when it was last heard, and not applied by it
	ClockAhead               time.Duration // of this node's wall clock, to about a round trip
	Format                   byte          // the newest form of the log that it reads; 0: it has not said
	WebURL                   string        // of its page; "": not reached from elsewhere, or not known
}

// Topology is the cluster as this node sees it.
type Topology struct {
	ClusterID, Self, Leader, LastLeader string
	Term, AppliedIndex, CommitIndex     uint64
	Format                              byte      // the newest form of the log that may be written
	Nodes                               *[]Member // ordered by id; shared, and the same pointer until it changes
}

// Topology describes the cluster. It costs little: the nodes are looked at a few
// times a second, everything else is asked now.
func (n *Node) Topology() *Topology {
	index, _ := n.machine.check()
	_, leader := n.raft.LeaderWithID()
	t := &Topology{
		ClusterID: n.self().ClusterID, Self: n.options.NodeID, Leader: string(leader),
		Term: n.raft.CurrentTerm(), AppliedIndex: index, CommitIndex: n.raft.CommitIndex(),
		Format: byte(n.format.Load()), Nodes: n.members.Load(),
	}
	if t.Leader == t.Self && n.reign.Load() == nil {
		t.Leader = "" // elected, but not serving yet
	}
	t.LastLeader = n.lastLeader(t.Leader)
	return t
}

// lookAtMembers renews what Topology says of the nodes.
func (n *Node) lookAtMembers() {
	index, _ := n.machine.check()
	members := []Member{}
	for _, s := range n.servers() {
		members = append(members, n.memberView(s, index))
	}
	slices.SortFunc(members, func(a, b Member) int { return strings.Compare(a.ID, b.ID) })
	n.members.Store(&members)
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
		n.counters.leaderChanges.Add(1)
	}
	return now
}

func (n *Node) memberView(s raft.Server, index uint64) Member {
	m := Member{ID: string(s.ID), RaftAddr: string(s.Address), Voter: s.Suffrage == raft.Voter}
	if m.ID == n.options.NodeID {
		m.ClientAddr, m.Up, m.AppliedIndex, m.LagEntries = n.options.ClientAddr, true, index, behind(n.raft.CommitIndex(), index)
		m.Format, m.WebURL = n.options.Format, n.options.WebURL
		return m
	}
	if last, ok := n.peers.last(m.ID); ok {
		m.LastHeard = time.Since(last.at)
		m.ClientAddr, m.Up, m.AppliedIndex = last.ClientAddr, m.LastHeard < 3*statusEvery, last.Index
		m.LagEntries, m.ClockAhead, m.Format = last.lag, last.ahead, max(last.Format, wire.Oldest)
		m.WebURL = last.WebURL
	}
	return m
}

// behind is how many entries are committed and not applied.
func behind(commit, applied uint64) uint64 { return commit - min(applied, commit) }
