package raftstore

import (
	"encoding/json"
	"fmt"
	"net"
	"time"

	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/raftstore/peer"
)

// status is what a node tells another one about itself.
type status struct {
	NodeID, ClusterID    string
	RaftAddr, ClientAddr string
	Pristine             bool   // belongs to no cluster and has no log
	Leader               string // the id of the leader, "" when it knows none
	LeaderAddr           string // its inter-node address
	Term, Commit, Index  uint64
	Format               byte // the newest it can read; 0, of a weir that did not say, is wire.Oldest
	WallNs               int64
	AppendNs             int64    // the median of its last appends to the log; 0: not known
	MaxMemory            int64    // bytes; 0: no bound
	MembersAt            uint64   // the entry of the configuration that Members are of
	Members              []string // ids in the newest committed configuration it knows
	Held                 *held    `json:",omitempty"` // nil: an older weir does not tell
	Stopping             bool     `json:",omitempty"`
	WebURL               string   `json:",omitempty"` // of its page; "": nowhere, or an older weir
}

// held tells how long a node has had the entry whose stamp it applied last.
type held struct {
	Index uint64
	Ns    int64 // since the entry arrived, by the node's monotonic clock
	Live  bool  // it has been up since the entry was proposed
}

func (s status) encode() []byte {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // strings and integers always encode
	}
	return b
}

// status describes this node.
func (n *Node) status() status {
	addr, leader := n.raft.LeaderWithID()
	index, _ := n.machine.check()
	_, seen := n.machine.lastArrival()
	var members []string
	var at uint64
	if c := n.machine.committed.Load(); c != nil {
		members, at = c.ids(), c.index
	}
	return status{
		NodeID: n.options.NodeID, ClusterID: n.self().ClusterID,
		RaftAddr: n.options.RaftAddr, ClientAddr: n.options.ClientAddr,
		Pristine: n.pristine(), Leader: string(leader), LeaderAddr: string(addr),
		Term: n.raft.CurrentTerm(), Commit: n.raft.CommitIndex(), Index: index,
		Format: n.options.Format, WallNs: n.source.WallNs(), AppendNs: int64(n.logs.times.median()), MaxMemory: n.maxMemory, Members: members, MembersAt: at,
		Stopping: n.stopping.Load(), WebURL: n.options.WebURL,
		Held: &held{seen.index, max(n.source.MonotonicNs()-seen.rawNs, 0), seen.live},
	}
}

// self is how this node greets others.
func (n *Node) self() peer.Identity {
	n.identity.Lock()
	defer n.identity.Unlock()
	return peer.Identity{NodeID: n.identity.NodeID, ClusterID: n.identity.ClusterID}
}

// hasCluster reports whether the cluster's first entry has been applied here.
func (n *Node) hasCluster() bool { return n.self().ClusterID != "" }

// pristine reports whether this node has promised nothing to anyone.
func (n *Node) pristine() bool {
	return n.raft.LastIndex() == 0 && n.raft.CurrentTerm() == 0 && len(n.servers()) == 0
}

// joined takes note of the cluster this node belongs to, and of what it agreed on.
func (n *Node) joined(f founding) {
	if f.TestClock != n.testClock {
		n.fatal(fmt.Errorf("%w: the cluster's is a test clock: %t, this node's: %t", ErrClockKind, f.TestClock, n.testClock))
	}
	if f.IDLifetimeNs != n.idLifetimeNs {
		n.log.Warn("the cluster remembers ids for another time than this node was told; the cluster's counts",
			"cluster", time.Duration(f.IDLifetimeNs), "here", time.Duration(n.idLifetimeNs))
	}
	n.identity.Lock()
	defer n.identity.Unlock()
	if n.identity.ClusterID == f.ClusterID {
		return
	}
	n.identity.ClusterID = f.ClusterID
	if err := writeIdentity(n.options.FS, n.options.DataDir, n.identity.identity); err != nil {
		n.fatal(err)
	}
	n.log.Info("this node belongs to a cluster", "cluster", f.ClusterID)
}

// markInvited remembers for ever that this node was taken in.
func (n *Node) markInvited() error {
	n.identity.Lock()
	defer n.identity.Unlock()
	if n.identity.Invited {
		return nil
	}
	n.identity.Invited = true
	return writeIdentity(n.options.FS, n.options.DataDir, n.identity.identity)
}

// servesRaft says whether this node may vote and be sent entries. One with an empty
// data directory may not before it was taken in: it may be a member that has lost its
// disk, and with it what it promised; a second vote could undo what was answered.
func (n *Node) servesRaft() error {
	if n.invited() {
		return nil
	}
	guardNotTakenIn.Hit()
	return ErrNotTakenIn
}

// invited reports whether a founder or a leader has taken this node in.
func (n *Node) invited() bool {
	n.identity.Lock()
	defer n.identity.Unlock()
	return n.identity.Invited
}

// markJoined remembers for ever that this node has been a member since the
// configuration at an entry: it never asks to be taken in again, and knows when it is
// none any more.
func (n *Node) markJoined(at uint64) {
	n.identity.Lock()
	defer n.identity.Unlock()
	if n.identity.Joined {
		return
	}
	n.identity.Joined, n.identity.JoinedAt = true, at
	if err := writeIdentity(n.options.FS, n.options.DataDir, n.identity.identity); err != nil {
		n.fatal(err)
	}
}

func (n *Node) hasJoined() bool {
	n.identity.Lock()
	defer n.identity.Unlock()
	return n.identity.Joined
}

// joinedBefore reports whether this node was a member before the configuration at an
// entry. After a restart the newest one it knows may be older, from an image of the
// time before it joined, until the log that follows is committed again.
func (n *Node) joinedBefore(at uint64) bool {
	n.identity.Lock()
	defer n.identity.Unlock()
	return n.identity.Joined && n.identity.JoinedAt < at
}

// servers is the newest configuration of the cluster this node knows.
func (n *Node) servers() []raft.Server {
	future := n.raft.GetConfiguration()
	if future.Error() != nil {
		return nil
	}
	return future.Configuration().Servers
}

// serveCalls answers another node until it goes away.
func (n *Node) serveCalls(conn net.Conn, from peer.Identity) {
	select {
	case <-n.ready:
		peer.ServeCalls(conn, from, n.answer, callTerm)
	case <-n.ctx.Done():
	}
}

// heard is what another node last said.
type heard struct {
	status
	at    time.Time
	lag   uint64        // entries that this node knew to be committed and the other had not applied
	ahead time.Duration // its wall clock, of this node's
	// wallNs is an upper bound of its wall clock at the moment when this node's monotonic
	// clock showed rawNs.
	wallNs, rawNs int64
}

// wallNow returns an upper bound of what the other node's wall clock shows now.
func (h *heard) wallNow(rawNs int64) int64 {
	return h.wallNs + max(rawNs-h.rawNs, int64(time.Since(h.at)))
}

// hears compares another node's status with this node's, now. took is the round trip of
// the question.
func (n *Node) hears(s status, took time.Duration) heard {
	return heard{
		status: s, at: time.Now(), wallNs: s.WallNs + int64(took), rawNs: n.source.MonotonicNs(),
		lag: behind(n.raft.CommitIndex(), s.Index), ahead: time.Duration(s.WallNs - n.source.WallNs()),
	}
}
