package limiter

import "errors"

// What a Limiter may answer. Any other error is taken for ErrUnknownOutcome:
// a client must never believe that nothing was counted when something may have been.
var (
	// ErrNoDisk: there is no data directory to save to.
	ErrNoDisk = errors.New("this server keeps its state in memory only, it was started without a data directory")
	// ErrTryAgain: the operations were certainly not applied; sending them again is safe.
	ErrTryAgain = errors.New("not applied, send it again")
	// ErrNotLeader: not applied, because only the leader can and this node is not it.
	ErrNotLeader = errors.New("this node is not the leader, nothing was changed")
	// ErrClusterDown: certainly not applied, because the cluster has no leader.
	ErrClusterDown = errors.New("the cluster has no leader, nothing was counted")
	// ErrOldMember: certainly not applied, because not every node could have done it.
	ErrOldMember = errors.New("not every node of the cluster has said that its weir knows this, nothing was " +
		"changed: upgrade all of them, and remove those that are gone")
	// ErrTooLarge: certainly not applied, because it would not fit the log.
	ErrTooLarge = errors.New("the transaction takes more than 8 MiB in the log of the cluster, nothing was counted: " +
		"send it in parts")
	// ErrOverloaded: shed before anything was decided.
	ErrOverloaded = errors.New("too many commands are waiting, nothing was counted")
	// ErrUnknownOutcome: the operations may have been applied.
	ErrUnknownOutcome = errors.New("no answer in time, it may have been counted")
)
