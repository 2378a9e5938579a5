package limiter

import "errors"

// Errors of a Limiter. A caller treats any other error as ErrUnknownOutcome. A client must never assume that nothing
// was counted when something may have been counted.
var (
	// ErrNoDisk: the server has no data directory.
	ErrNoDisk = errors.New("this server keeps its state in memory only, because it was started without a data " +
		"directory")
	// ErrTryAgain: the operations were certainly not applied. A retry is safe.
	ErrTryAgain = errors.New("not applied, send it again")
	// ErrNotLeader: certainly not applied, because only the leader can do this and this node is a follower.
	ErrNotLeader = errors.New("this node is not the leader, nothing was changed")
	// ErrClusterDown: certainly not applied, because the cluster has no leader.
	ErrClusterDown = errors.New("the cluster has no leader, nothing was counted")
	// ErrOldMember: certainly not applied, because not every node supports the operation.
	ErrOldMember = errors.New("not every node of the cluster is known to support this, nothing was changed: upgrade " +
		"all nodes, and remove nodes that are gone")
	// ErrTooLarge: certainly not applied, because the operations exceed the size of a log entry.
	ErrTooLarge = errors.New("the transaction takes more than 8 MiB in the log of the cluster, nothing was counted: " +
		"send it in parts")
	// ErrOverloaded: rejected before any decision.
	ErrOverloaded = errors.New("too many commands are waiting, nothing was counted")
	// ErrCrossSlot: rejected before any decision, because an atomic step cannot span Raft groups.
	ErrCrossSlot = errors.New("keys in request don't hash to the same slot, nothing was counted: give them one hash " +
		"tag, like {user42}:a and {user42}:b")
	// ErrSharedInTx is ErrCrossSlot for a transaction that also changes what all groups share.
	ErrSharedInTx error = crossSlot("a transaction of a cluster with several groups changes either policies and " +
		"blocks EVERYWHERE, or keys of one slot, nothing was counted: send RL.POLICY and RL.BLOCK EVERYWHERE apart")
	// ErrUnknownOutcome: the operations may have been applied.
	ErrUnknownOutcome = errors.New("no answer in time, it may have been counted")
)

// crossSlot is a text for ErrCrossSlot.
type crossSlot string

func (e crossSlot) Error() string { return string(e) }

// Is reports whether the other error is ErrCrossSlot.
func (e crossSlot) Is(other error) bool { return other == ErrCrossSlot }
