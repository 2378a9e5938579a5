package raftstore

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/raftstore/peer"
	"github.com/weir-project/weir/raftstore/wire"
)

// The calls nodes make to each other.
const (
	callStatus    byte = 's' // how are you: a status in JSON
	callTerm      byte = 'v' // which term are you in: 8 bytes
	callInvite    byte = 'i' // found a cluster with me
	callJoin      byte = 'j' // take me in: a joining in JSON
	callDecide    byte = 'd' // carry out a body of operations
	callClear     byte = 'c' // forget everything
	callAdmin     byte = 'a' // change the cluster: an order in JSON
	callAdvance   byte = 't' // move the test clock: an order in JSON
	callReadIndex byte = 'r' // up to where must I apply the log to read: a readIndexQuestion
	callStopping  byte = 'b' // I stop: no payload
	callHistory   byte = 'h' // the history at an entry: its index and the asker's history, 8 bytes each
)

// The answers. Every other byte means that the outcome is not known.
const (
	answered   byte = iota // the payload is the answer
	tryAgain               // certainly not applied
	notLeader              // certainly not applied: this node is not the leader
	overloaded             // certainly not applied: too much is waiting
	unknown                // it may have been applied
	refused                // not applied, for the reason in the payload
	lostState              // the caller's id is that of a node with a past
	oldMember              // not applied: not every member knows it
	spentID                // the caller's id is that of a node that has left
	tooLarge               // certainly not applied: longer than an entry may be
)

// answer handles a call of another node.
func (n *Node) answer(from peer.Identity, method byte, payload []byte) (byte, []byte) {
	switch method {
	case callStatus:
		return answered, n.status().encode()
	case callTerm:
		return answered, binary.LittleEndian.AppendUint64(nil, n.raft.CurrentTerm())
	case callStopping:
		n.hearStopping(from.NodeID)
		return answered, nil
	case callHistory:
		return n.answerHistory(from, payload)
	case callReadIndex:
		if n.faults.NoReadIndex {
			break
		}
		return n.answerReadIndex(from, payload)
	case callDecide:
		return n.answerDecide(payload)
	case callClear:
		return reply(nil, n.clearHere())
	case callInvite:
		return reply(nil, n.beInvited(from))
	case callJoin:
		return n.answerJSON(payload, func(b []byte) error {
			var j joining
			if err := json.Unmarshal(b, &j); err != nil {
				return err
			}
			return n.takeIn(from, j)
		})
	case callAdmin:
		return n.answerJSON(payload, func(b []byte) error {
			var o order
			if err := json.Unmarshal(b, &o); err != nil {
				return err
			}
			return n.carryOut(o)
		})
	}
	return refused, []byte("this version of weir does not know the call")
}

func (n *Node) answerJSON(payload []byte, act func([]byte) error) (byte, []byte) {
	return reply(nil, act(payload))
}

// reply turns an outcome into an answer.
func reply(payload []byte, err error) (byte, []byte) {
	switch {
	case err == nil:
		return answered, payload
	case errors.Is(err, ErrTryAgain):
		return tryAgain, nil
	case errors.Is(err, ErrNotLeader), errors.Is(err, ErrNoLeader):
		return notLeader, nil
	case errors.Is(err, ErrOverloaded):
		return overloaded, nil
	case errors.Is(err, ErrLostState):
		return lostState, []byte(err.Error())
	case errors.Is(err, ErrOldMember):
		return oldMember, nil
	case errors.Is(err, ErrTooLarge):
		return tooLarge, nil
	case errors.Is(err, ErrSpentID):
		return spentID, nil
	case errors.Is(err, ErrUnknown):
		return unknown, nil
	default:
		return refused, []byte(err.Error())
	}
}

// outcomeOf turns an answer back into an error.
func outcomeOf(status byte, payload []byte) error {
	switch status {
	case answered:
		return nil
	case tryAgain:
		return ErrTryAgain
	case notLeader:
		return ErrTryAgain
	case overloaded:
		return ErrOverloaded
	case lostState:
		return fmt.Errorf("%w%s", ErrLostState, strings.TrimPrefix(string(payload), ErrLostState.Error()))
	case oldMember:
		return ErrOldMember
	case tooLarge:
		return ErrTooLarge
	case spentID:
		return ErrSpentID
	case refused:
		return errors.New(string(payload))
	default:
		return ErrUnknown
	}
}

// answerDecide carries out a body that a follower forwards.
func (n *Node) answerDecide(body []byte) (byte, []byte) {
	n.answering.Add(1)
	defer n.answering.Add(-1)
	defer func() { n.lastForwarded.Store(int64(n.uptime())) }()
	if n.raft.State() != raft.Leader {
		return notLeader, nil
	}
	f, err := readForwarded(body)
	if err != nil {
		return refused, []byte(err.Error())
	}
	out := make([]engine.Decision, f.ops)
	if err := n.decideForwarded(f, out); err != nil {
		return reply(nil, err)
	}
	return answered, wire.AppendDecisions(make([]byte, 0, 16*len(out)), out, byte(n.format.Load()))
}

// clearHere forgets everything if this node leads.
func (n *Node) clearHere() error {
	if n.reign.Load() == nil {
		return ErrNotLeader
	}
	return n.Clear()
}
