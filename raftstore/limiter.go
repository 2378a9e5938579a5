package raftstore

import (
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore/internal/membership"
)

// Decide carries out a pipeline; see engine.Table.Decide. On a follower the leader
// does. If all operations are Dry, this node answers them from its own state: they are
// linearizable after a ReadIndex, else as old as StaleFor says. An error is for all
// operations: none of the answers may be used.
func (n *Node) Decide(ops []engine.Op, out []engine.Decision) error {
	return n.group.pipeline.Decide(ops, out, false)
}

// DecideAtomic carries out ops as one step; see engine.Table.DecideAtomic.
func (n *Node) DecideAtomic(ops []engine.Op, out []engine.Decision) error {
	return n.group.pipeline.DecideAtomic(ops, out, false)
}

// Clear forgets all limiters, blocks and remembered IDs on all nodes. Policies stay.
func (n *Node) Clear() error { return n.group.pipeline.Clear() }

// ReadIndex returns nil when this node has applied everything that any node had acknowledged
// before the call: reads of this node that follow are linearizable. It works on any node and
// writes nothing to the log. ErrNoLeader: no leader is known. ErrTryAgain: the answer did not
// come in time, or a divergence check of this node is under way.
func (n *Node) ReadIndex() error { return n.group.reads.ReadIndex() }

// StaleFor returns an upper bound of the age of this node's state: the time since the last
// moment for which this node has applied everything acknowledged until then. Before the
// first such moment after a start it returns UnknownAge: only the wall clock could tell how
// long this node was down, and it may have been set.
func (n *Node) StaleFor() time.Duration { return n.group.reads.StaleFor() }

// AddNode makes the node with this id and inter-node address a member; it votes
// when it has caught up.
func (n *Node) AddNode(id, raftAddr string) error {
	return n.group.membership.Give(membership.Order{What: "add", ID: id, Addr: raftAddr})
}

// RemoveNode takes a node out of the cluster. It must not come back under its id.
func (n *Node) RemoveNode(id string) error {
	return n.group.membership.Give(membership.Order{What: "remove", ID: id})
}

// TransferLeadership hands leadership to a node; to the most advanced when to is
// empty.
func (n *Node) TransferLeadership(to string) error {
	return n.group.membership.Give(membership.Order{What: "transfer", ID: to})
}

// Snapshot takes a snapshot now.
func (n *Node) Snapshot() error { return n.group.snapshots.Now() }

// Save is Snapshot: with it on disk, a restart replays nothing. Every answer given
// so far is on the disks of a majority anyway.
func (n *Node) Save() error { return n.Snapshot() }

// LastSave is when the last snapshot was taken; the zero time: never.
func (n *Node) LastSave() time.Time { return n.group.snapshots.Last() }

// Backup takes a snapshot and returns it as a file for persistence.Restore or Restore.
// It contains everything this node has applied when it is called: on the leader all that
// was answered, on a follower what it knew. Deciding goes on meanwhile. ErrUnavailable
// when the node closes, or has applied nothing yet.
func (n *Node) Backup() (*limiter.Backup, error) { return n.group.snapshots.Backup() }

// UsedBytes returns the size of all files in the data directory. It stats every file.
func (n *Node) UsedBytes() int64 { return n.host.UsedBytes() }
