package raftstore

import (
	"encoding/binary"
	"encoding/json"

	"github.com/weir-project/weir/internal/faults"
	"github.com/weir-project/weir/raftstore/internal/calls"
	"github.com/weir-project/weir/raftstore/peer"
)

// answer handles a call of another node.
func (n *Node) answer(from peer.Identity, method byte, payload []byte) (byte, []byte) {
	switch method {
	case calls.Status:
		return calls.Answered, n.status().encode()
	case calls.Term:
		return calls.Answered, binary.LittleEndian.AppendUint64(nil, n.group.raft.CurrentTerm())
	case calls.Stopping:
		n.host.peers.hearStopping(from.NodeID)
		return calls.Answered, nil
	case calls.History:
		return n.group.divergence.answerHistory(from, payload)
	case calls.ReadIndex:
		if n.host.faults.Has(faults.NoReadIndex) {
			break
		}
		return n.group.reads.answerReadIndex(from, payload)
	case calls.Decide:
		return n.group.pipeline.answerDecide(payload)
	case calls.Clear:
		return calls.Reply(nil, n.group.pipeline.clearHere())
	case calls.Invite:
		return calls.Reply(nil, n.group.membership.beInvited(from))
	case calls.Join:
		return n.answerJSON(payload, func(b []byte) error {
			var j joining
			if err := json.Unmarshal(b, &j); err != nil {
				return err
			}
			return n.group.membership.takeIn(from, j)
		})
	case calls.Admin:
		return n.answerJSON(payload, func(b []byte) error {
			var o order
			if err := json.Unmarshal(b, &o); err != nil {
				return err
			}
			return n.group.membership.carryOut(o)
		})
	}
	return calls.Refused, []byte("this version of weir does not know the call")
}

func (n *Node) answerJSON(payload []byte, act func([]byte) error) (byte, []byte) {
	return calls.Reply(nil, act(payload))
}

// status describes this node.
func (n *Node) status() status {
	addr, leader := n.group.raft.LeaderWithID()
	index, _ := n.group.machine.Check()
	_, seen := n.group.machine.LastArrival()
	var members []string
	var at uint64
	if c := n.group.machine.Committed.Load(); c != nil {
		members, at = c.Ids(), c.Index
	}
	return status{
		NodeID: n.host.options.NodeID, ClusterID: n.host.identity.Self().ClusterID,
		RaftAddr: n.host.options.RaftAddr, ClientAddr: n.host.options.ClientAddr,
		Pristine: n.group.membership.pristine(), Leader: string(leader), LeaderAddr: string(addr),
		Term: n.group.raft.CurrentTerm(), Commit: n.group.raft.CommitIndex(), Index: index,
		Format: n.host.options.Format, WallNs: n.host.source.WallNs(), AppendNs: int64(n.group.logs.Times.Median()), MaxMemory: n.host.maxMemory, Members: members, MembersAt: at,
		Stopping: n.host.stopping.Load(), WebURL: n.host.options.WebURL,
		Held: &held{seen.Index, max(n.host.source.MonotonicNs()-seen.RawNs, 0), seen.Live},
	}
}
