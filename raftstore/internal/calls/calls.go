package calls

import (
	"errors"
	"fmt"
	"strings"

	"github.com/weir-project/weir/raftstore/internal/failure"
)

// The calls nodes make to each other.
const (
	Status    byte = 's' // how are you: a status in JSON
	Term      byte = 'v' // which term are you in: 8 bytes
	Invite    byte = 'i' // found a cluster with me
	Join      byte = 'j' // take me in: a joining in JSON
	Decide    byte = 'd' // carry out a body of operations
	Clear     byte = 'c' // forget everything
	Admin     byte = 'a' // change the cluster: an order in JSON
	Advance   byte = 't' // move the test clock: an order in JSON
	ReadIndex byte = 'r' // up to where must I apply the log to read: a readIndexQuestion
	Stopping  byte = 'b' // I stop: no payload
	History   byte = 'h' // the history at an entry: its index and the asker's history, 8 bytes each
)

// The answers. Every other byte means that the outcome is not known.
const (
	Answered   byte = iota // the payload is the answer
	TryAgain               // certainly not applied
	NotLeader              // certainly not applied: this node is not the leader
	overloaded             // certainly not applied: too much is waiting
	unknown                // it may have been applied
	Refused                // not applied, for the reason in the payload
	lostState              // the caller's id is that of a node with a past
	oldMember              // not applied: not every member knows it
	spentID                // the caller's id is that of a node that has left
	tooLarge               // certainly not applied: longer than an entry may be
)

// Reply turns an outcome into an answer.
func Reply(payload []byte, err error) (byte, []byte) {
	switch {
	case err == nil:
		return Answered, payload
	case errors.Is(err, failure.ErrTryAgain):
		return TryAgain, nil
	case errors.Is(err, failure.ErrNotLeader), errors.Is(err, failure.ErrNoLeader):
		return NotLeader, nil
	case errors.Is(err, failure.ErrOverloaded):
		return overloaded, nil
	case errors.Is(err, failure.ErrLostState):
		return lostState, []byte(err.Error())
	case errors.Is(err, failure.ErrOldMember):
		return oldMember, nil
	case errors.Is(err, failure.ErrTooLarge):
		return tooLarge, nil
	case errors.Is(err, failure.ErrSpentID):
		return spentID, nil
	case errors.Is(err, failure.ErrUnknown):
		return unknown, nil
	default:
		return Refused, []byte(err.Error())
	}
}

// OutcomeOf turns an answer back into an error.
func OutcomeOf(status byte, payload []byte) error {
	switch status {
	case Answered:
		return nil
	case TryAgain:
		return failure.ErrTryAgain
	case NotLeader:
		return failure.ErrTryAgain
	case overloaded:
		return failure.ErrOverloaded
	case lostState:
		return fmt.Errorf("%w%s", failure.ErrLostState, strings.TrimPrefix(string(payload), failure.ErrLostState.Error()))
	case oldMember:
		return failure.ErrOldMember
	case tooLarge:
		return failure.ErrTooLarge
	case spentID:
		return failure.ErrSpentID
	case Refused:
		return errors.New(string(payload))
	default:
		return failure.ErrUnknown
	}
}
