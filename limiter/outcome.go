package limiter

import (
	"errors"

	"github.com/weir-project/weir/engine"
)

// Outcome says what became of operations that a Limiter did not decide. It is the error of a whole pipeline. If the
// Raft groups of a node fail one by one, it is the status of a single operation: see Status. A status has no text of
// its own, so what varies stands in the Decision, as the groups of ErrSomeGroups do. The zero value is none: the
// engine decided.
type Outcome uint8

// The outcomes. Nodes send the numbers of some to each other, so a number never changes.
const (
	_ Outcome = iota
	// ErrWrongGroup: not applied, because another Raft group owns the slot of the key.
	ErrWrongGroup
	// ErrCrossSlot: rejected before any decision, because an atomic step cannot span Raft groups.
	ErrCrossSlot
	// ErrTryAgain: the operations were certainly not applied. A retry is safe.
	ErrTryAgain
	// ErrClusterDown: certainly not applied, because the cluster or the group of the key has no leader.
	ErrClusterDown
	// ErrOverloaded: rejected before any decision.
	ErrOverloaded
	// ErrOldMember: certainly not applied, because not every node supports the operation.
	ErrOldMember
	// ErrUnknownOutcome: the operations may have been applied. It is the outcome of every error that is none of these.
	ErrUnknownOutcome
	// ErrSomeGroups: applied. Decision.Allowed of Decision.Limit groups have it, and the others will get it.
	ErrSomeGroups
	// ErrNotLeader: certainly not applied, because only the leader can do this and this node is a follower.
	ErrNotLeader
	// ErrTooLarge: certainly not applied, because the operations exceed the size of a log entry.
	ErrTooLarge
	// ErrNoDisk: the server has no data directory.
	ErrNoDisk
)

// outcomes are the outcomes in words: the first word of the error reply, by which programs distinguish errors, and the
// text for people. A client must never assume that nothing was counted when something may have been counted.
var outcomes = [...]struct {
	word, text string
	mayBeDone  bool
}{
	ErrWrongGroup: {word: "TRYAGAIN", text: tryAgain},
	ErrCrossSlot: {word: "CROSSSLOT", text: "keys in request don't hash to the same slot, nothing was counted: give " +
		"them one hash tag, like {user42}:a and {user42}:b"},
	ErrTryAgain:    {word: "TRYAGAIN", text: tryAgain},
	ErrClusterDown: {word: "CLUSTERDOWN", text: "the cluster has no leader, nothing was counted"},
	ErrOverloaded:  {word: "OVERLOADED", text: "too many commands are waiting, nothing was counted"},
	ErrOldMember: {word: "ERR", text: "not every node of the cluster is known to support this, nothing was changed: " +
		"upgrade all nodes, and remove nodes that are gone"},
	ErrUnknownOutcome: {word: "UNKNOWN", text: "no answer in time, it may have been counted", mayBeDone: true},
	ErrSomeGroups: {word: "UNKNOWN", text: "the change is made, and not all groups have it: the others get it by " +
		"themselves, once they have a leader", mayBeDone: true},
	ErrNotLeader: {word: "TRYAGAIN", text: "this node is not the leader, nothing was changed"},
	ErrTooLarge: {word: "ERR", text: "the transaction takes more than 8 MiB in the log of the cluster, nothing was " +
		"counted: send it in parts"},
	ErrNoDisk: {word: "ERR", text: "this server keeps its state in memory only, because it was started without a " +
		"data directory"},
}

const tryAgain = "not applied, send it again"

func (o Outcome) Error() string { return outcomes[o].text }

// Reply returns the error reply of an error with this outcome. The cause of ErrTryAgain is in the log only.
func (o Outcome) Reply(err error) string {
	if o == ErrTryAgain {
		err = o
	}
	return outcomes[o].word + " " + err.Error()
}

// MayBeDone reports whether an operation with this outcome may have been applied.
func (o Outcome) MayBeDone() bool { return outcomes[o].mayBeDone }

// Status returns the status of an operation that has the outcome.
func (o Outcome) Status() engine.Status { return engine.NotDecided + engine.Status(o) - 1 }

// OutcomeOf returns the outcome of an error.
func OutcomeOf(err error) Outcome {
	var o Outcome
	if !errors.As(err, &o) {
		return ErrUnknownOutcome
	}
	return o
}

// OutcomeOfStatus returns the outcome of an operation, or 0 if the status is one of the engine. A status of a later
// version is ErrUnknownOutcome.
func OutcomeOfStatus(s engine.Status) Outcome {
	switch o := int(s) - int(engine.NotDecided) + 1; {
	case o <= 0, s == engine.HoldEnded, s == engine.OutOfOrder:
		return 0
	case o < len(outcomes):
		return Outcome(o)
	}
	return ErrUnknownOutcome
}

// ErrSharedInTx is ErrCrossSlot for a transaction that also changes what all groups share.
var ErrSharedInTx error = crossSlot("a transaction of a cluster with several groups changes either policies and " +
	"blocks EVERYWHERE, or keys of one slot, nothing was counted: send RL.POLICY and RL.BLOCK EVERYWHERE apart")

// crossSlot is a text for ErrCrossSlot.
type crossSlot string

func (e crossSlot) Error() string { return string(e) }

func (e crossSlot) Unwrap() error { return ErrCrossSlot }
