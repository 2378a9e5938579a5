package raftstore

import (
	"errors"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore/internal/membership"
)

// Decide decides a pipeline of operations; see engine.Table.Decide. On a follower the leader decides them. If all
// operations are Dry, this node answers them from its own state. Such answers are linearizable after a ReadIndex, and
// otherwise as old as StaleFor reports. An error applies to all operations: no answer may be used.
func (n *Node) Decide(ops []engine.Op, out []engine.Decision) error {
	return n.pipeline.Decide(ops, out, false)
}

// Start begins what Decide does, and wait completes it. started is false if Decide must be called instead. The caller
// must call wait, and keeps the slices unchanged until then.
func (n *Node) Start(ops []engine.Op, out []engine.Decision) (wait func() error, started bool) {
	return n.pipeline.Start(ops, out)
}

// DecideAtomic decides ops as one step; see engine.Table.DecideAtomic.
func (n *Node) DecideAtomic(ops []engine.Op, out []engine.Decision) error {
	return n.pipeline.DecideAtomic(ops, out, false)
}

// Clear removes all limiters, blocks and remembered IDs on all nodes. Policies stay.
func (n *Node) Clear() error { return n.pipeline.Clear() }

// ClearDatabase removes everything of one database but the blocks everywhere on all nodes. While some member does not
// know databases, no other one than 0 has anything.
func (n *Node) ClearDatabase(database int) error {
	var out [1]engine.Decision
	err := n.Decide([]engine.Op{engine.Flush(database, n.owned().First)}, out[:])
	switch {
	case database == 0 && errors.Is(err, limiter.ErrOldMember):
		return n.Clear()
	case err == nil && out[0].Status != engine.OK:
		return limiter.OutcomeOfStatus(out[0].Status)
	}
	return err
}

// ReadIndex returns nil when this node has applied everything that any node had acknowledged before the call. Later
// reads of this node are then linearizable. It works on any node and writes nothing to the log. limiter.ErrClusterDown:
// no leader is known. ErrTryAgain: the answer did not come in time, or a divergence check of this node is under way.
func (n *Node) ReadIndex() error { return n.reads.ReadIndex() }

// StaleFor returns an upper bound of the age of this node's state. The age counts from the latest moment M for which
// this node has applied everything that was acknowledged before M. Until a started node knows such a moment, StaleFor
// returns limiter.UnknownAge. Only the wall clock could tell how long this node was down, and that clock may have been
// set.
func (n *Node) StaleFor() time.Duration { return n.reads.StaleFor() }

// AddNode adds the node with this id and inter-node address to the cluster. The node votes when it has caught up.
func (n *Node) AddNode(id, raftAddr string) error {
	return n.membership.Give(membership.Order{What: "add", ID: id, Addr: raftAddr})
}

// RemoveNode removes a node from the cluster. The node must not return under its id.
func (n *Node) RemoveNode(id string) error {
	return n.membership.Give(membership.Order{What: "remove", ID: id})
}

// ReleaseReplica removes a node from a group on a part of the nodes, unless the group would have too few replicas.
func (n *Node) ReleaseReplica(id string) error {
	return n.membership.Give(membership.Order{What: "release", ID: id})
}

// AwaitQuiet returns when this node has answered the operations that it has, or after a second.
func (n *Node) AwaitQuiet() { n.pipeline.AwaitQuiet() }

// Promote gives a vote to a member that has caught up, and Demote takes it again. They are for the first group of a
// cluster with Options.Replicas, whose other members only follow it.
func (n *Node) Promote(id string) error {
	return n.membership.Give(membership.Order{What: "promote", ID: id})
}

// Demote is described at Promote.
func (n *Node) Demote(id string) error {
	return n.membership.Give(membership.Order{What: "demote", ID: id})
}

// TransferLeadership transfers leadership to the node with the id to. If to is empty, the voter that has applied most
// becomes the leader.
func (n *Node) TransferLeadership(to string) error {
	return n.membership.Give(membership.Order{What: "transfer", ID: to})
}

// Snapshot takes a snapshot now.
func (n *Node) Snapshot() error { return n.snapshots.Now() }

// Save takes a snapshot, after which a restart replays nothing. Every acknowledged decision is on the disks of a
// majority anyway.
func (n *Node) Save() error { return n.Snapshot() }

// LastSave returns the time of the last snapshot, or the zero time if there was none.
func (n *Node) LastSave() time.Time { return n.snapshots.Last() }

// Backup takes a snapshot and returns it as a file for persistence.Restore or Restore. It contains everything that
// this node had applied at the call: on the leader all acknowledged decisions, on a follower those it knew. Decisions
// continue meanwhile. ErrUnavailable: the node closes, or has applied nothing yet.
func (n *Node) Backup() (*limiter.Backup, error) { return n.snapshots.Backup() }
