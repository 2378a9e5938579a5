package calls

import (
	"errors"
	"fmt"
	"strings"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore/internal/failure"
)

// The methods of the calls between nodes.
const (
	Status    byte = 's' // asks for the node's status, in JSON
	Term      byte = 'v' // asks for the node's term: 8 bytes
	Invite    byte = 'i' // invites a node to bootstrap a cluster with the caller
	Join      byte = 'j' // asks to add the caller: a membership.Joining in JSON
	Decide    byte = 'd' // asks to decide operations, as package wire encodes them
	Clear     byte = 'c' // asks to clear all nodes
	Admin     byte = 'a' // asks for a change of the cluster: a membership.Order in JSON
	ReadIndex byte = 'r' // asks for the read index: a question of package readindex
	Stopping  byte = 'b' // tells that the caller stops: no payload
	Group     byte = 'g' // a call about a group that the caller lacks, to a host: see package router
	Read      byte = 'q' // in Group: a question about the state of the group
	Backup    byte = 'p' // in Group: about a backup that the host reads for the caller
	Follow    byte = 'f' // in Group: asks to give the group the shared items of the first one
	Host      byte = 'o' // in Group: asks to open a replica of the group
	Rest      byte = 'z' // in Group: asks to use other replicas than one's own, which the group is about to remove
	History   byte = 'h' // asks for the history at an entry: its index and the caller's history, 8 bytes each
)

// The statuses of answers. For any other byte the outcome is unknown.
const (
	Answered   byte = iota // the payload is the answer
	TryAgain               // certainly not applied
	NotLeader              // certainly not applied: this node is not the leader
	overloaded             // certainly not applied: too many operations wait
	unknown                // it may have been applied
	Refused                // not applied, for the reason in the payload
	lostState              // not added: the caller lost its state, and its id is a member's
	oldMember              // not applied: not every member can read the operation
	spentID                // not added: the caller's id has left the cluster
	tooLarge               // certainly not applied: longer than an entry may be
)

// statuses are the statuses of the outcomes that nodes tell each other. An answer without a status is Refused.
var statuses = map[limiter.Outcome]byte{
	limiter.ErrTryAgain: TryAgain, limiter.ErrNotLeader: NotLeader, limiter.ErrClusterDown: NotLeader,
	limiter.ErrOverloaded: overloaded, limiter.ErrOldMember: oldMember, limiter.ErrTooLarge: tooLarge,
	limiter.ErrUnknownOutcome: unknown,
}

// Reply encodes an outcome as the status and the payload of an answer.
func Reply(payload []byte, err error) (byte, []byte) {
	var outcome limiter.Outcome
	switch {
	case err == nil:
		return Answered, payload
	case errors.Is(err, failure.ErrLostState):
		return lostState, []byte(err.Error())
	case errors.Is(err, failure.ErrRemovedID):
		return spentID, nil
	case errors.As(err, &outcome) && statuses[outcome] != 0:
		return statuses[outcome], nil
	}
	return Refused, []byte(err.Error())
}

// OutcomeOf decodes the outcome from an answer. A caller cannot use that another node does not lead, so NotLeader is
// limiter.ErrTryAgain.
func OutcomeOf(status byte, payload []byte) error {
	switch status {
	case Answered:
		return nil
	case NotLeader:
		return limiter.ErrTryAgain
	case lostState:
		return fmt.Errorf("%w%s", failure.ErrLostState,
			strings.TrimPrefix(string(payload), failure.ErrLostState.Error()))
	case spentID:
		return failure.ErrRemovedID
	case Refused:
		return errors.New(string(payload))
	}
	for outcome, s := range statuses {
		if s == status {
			return outcome
		}
	}
	return limiter.ErrUnknownOutcome
}
