package raftstore

import (
	"encoding/binary"
	"encoding/json"

	"github.com/weir-project/weir/raftstore/internal/calls"
	"github.com/weir-project/weir/raftstore/internal/host"
	"github.com/weir-project/weir/raftstore/internal/membership"
	"github.com/weir-project/weir/raftstore/peer"
	"github.com/weir-project/weir/raftstore/wire"
)

// answer handles a call of another node.
func (n *Node) answer(from peer.Identity, method byte, payload []byte) (byte, []byte) {
	switch method {
	case calls.Status:
		return calls.Answered, n.status().Encode()
	case calls.Term:
		return calls.Answered, binary.LittleEndian.AppendUint64(nil, n.raft.CurrentTerm())
	case calls.Stopping:
		n.own.Peers.MarkStopping(from.NodeID)
		return calls.Answered, nil
	case calls.History:
		return n.divergence.AnswerHistory(from, payload)
	case calls.ReadIndex:
		return n.reads.Answer(from, payload)
	case calls.Decide:
		return n.pipeline.AnswerDecide(payload)
	case calls.Clear:
		return calls.Reply(nil, n.pipeline.ClearHere())
	case calls.Invite:
		return calls.Reply(nil, n.membership.AcceptInvitation(from))
	case calls.Join:
		return calls.Reply(nil, decoded(payload, func(j membership.Joining) error {
			return n.membership.AddNonvoter(from, j)
		}))
	case calls.Admin:
		return calls.Reply(nil, decoded(payload, n.membership.Execute))
	}
	return calls.Refused, []byte("this version of weir does not know this call")
}

// AnswerGuest handles a call of a host that has no replica of this group. On a follower the leader carries it out.
func (n *Node) AnswerGuest(from peer.Identity, method byte, payload []byte) (byte, []byte) {
	switch method {
	case calls.Decide:
		if status, answer := n.pipeline.AnswerDecide(payload); status != calls.NotLeader {
			return status, answer
		}
		return n.pipeline.RelayDecide(payload)
	case calls.Clear:
		return calls.Reply(nil, n.Clear())
	case calls.Admin:
		return calls.Reply(nil, decoded(payload, n.membership.Give))
	}
	return calls.Refused, []byte("this version of weir does not know this call")
}

// decoded decodes the argument of a call, and acts on it.
func decoded[T any](payload []byte, act func(T) error) error {
	var argument T
	if err := json.Unmarshal(payload, &argument); err != nil {
		return err
	}
	return act(argument)
}

// status returns the status of this node.
func (n *Node) status() host.Status {
	addr, leader := n.raft.LeaderWithID()
	index, _ := n.fsm.LastHistory()
	_, seen := n.fsm.LastArrival()
	var members []string
	var at uint64
	if c := n.fsm.Committed.Load(); c != nil {
		members, at = c.Ids(), c.Index
	}
	o, has := &n.own.Options, n.founding()
	return host.Status{
		NodeID: o.NodeID, ClusterID: n.own.Identity.Self().ClusterID,
		RaftAddr: o.RaftAddr, ClientAddr: o.ClientAddr,
		Pristine: n.membership.Pristine(), Leader: string(leader), LeaderAddr: string(addr),
		Term: n.raft.CurrentTerm(), Commit: n.raft.CommitIndex(), Index: index,
		Format: o.Format, WallNs: o.Source.WallNs(), AppendNs: int64(n.logs.Times.Median()),
		MaxMemory: o.Table.MaxMemoryBytes, Members: members, MembersAt: at,
		Stopping: n.own.Stopping.Load(), WebURL: o.WebURL,
		Groups: wire.CountGroups(has.Groups), Replicas: has.Replicas, Zone: o.Zone, Leads: n.leads(),
		Held: host.Held{Index: seen.Index, Ns: max(o.Source.MonotonicNs()-seen.RawNs, 0), Live: seen.Live},
	}
}
