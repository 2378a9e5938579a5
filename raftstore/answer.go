package raftstore

import (
	"encoding/binary"
	"encoding/json"

	"github.com/weir-project/weir/internal/faults"
	"github.com/weir-project/weir/raftstore/peer"
)

// answer handles a call of another node.
func (n *Node) answer(from peer.Identity, method byte, payload []byte) (byte, []byte) {
	switch method {
	case callStatus:
		return answered, n.status().encode()
	case callTerm:
		return answered, binary.LittleEndian.AppendUint64(nil, n.group.raft.CurrentTerm())
	case callStopping:
		n.host.peers.hearStopping(from.NodeID)
		return answered, nil
	case callHistory:
		return n.group.divergence.answerHistory(from, payload)
	case callReadIndex:
		if n.host.faults.Has(faults.NoReadIndex) {
			break
		}
		return n.group.reads.answerReadIndex(from, payload)
	case callDecide:
		return n.group.pipeline.answerDecide(payload)
	case callClear:
		return reply(nil, n.group.pipeline.clearHere())
	case callInvite:
		return reply(nil, n.group.membership.beInvited(from))
	case callJoin:
		return n.answerJSON(payload, func(b []byte) error {
			var j joining
			if err := json.Unmarshal(b, &j); err != nil {
				return err
			}
			return n.group.membership.takeIn(from, j)
		})
	case callAdmin:
		return n.answerJSON(payload, func(b []byte) error {
			var o order
			if err := json.Unmarshal(b, &o); err != nil {
				return err
			}
			return n.group.membership.carryOut(o)
		})
	}
	return refused, []byte("this version of weir does not know the call")
}

func (n *Node) answerJSON(payload []byte, act func([]byte) error) (byte, []byte) {
	return reply(nil, act(payload))
}

// status describes this node.
func (n *Node) status() status {
	addr, leader := n.group.raft.LeaderWithID()
	index, _ := n.group.machine.check()
	_, seen := n.group.machine.lastArrival()
	var members []string
	var at uint64
	if c := n.group.machine.committed.Load(); c != nil {
		members, at = c.ids(), c.index
	}
	return status{
		NodeID: n.host.options.NodeID, ClusterID: n.host.identity.self().ClusterID,
		RaftAddr: n.host.options.RaftAddr, ClientAddr: n.host.options.ClientAddr,
		Pristine: n.group.membership.pristine(), Leader: string(leader), LeaderAddr: string(addr),
		Term: n.group.raft.CurrentTerm(), Commit: n.group.raft.CommitIndex(), Index: index,
		Format: n.host.options.Format, WallNs: n.host.source.WallNs(), AppendNs: int64(n.group.logs.times.median()), MaxMemory: n.host.maxMemory, Members: members, MembersAt: at,
		Stopping: n.host.stopping.Load(), WebURL: n.host.options.WebURL,
		Held: &held{seen.index, max(n.host.source.MonotonicNs()-seen.rawNs, 0), seen.live},
	}
}
