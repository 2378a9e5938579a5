// Package failure defines the errors of a node that package limiter does not define: mainly the reasons for which a
// node does not start, or stops.
package failure

import (
	"errors"
	"fmt"

	"github.com/weir-project/weir/limiter"
)

// ErrInvalidOp: the operation is not valid for the log. Nothing was counted. It is an outcome of a call, as are the
// errors of package limiter. For any other error the outcome is unknown.
var ErrInvalidOp = errors.New("an argument is out of bounds")

// ErrLagging: this node has not applied the read index in time.
var ErrLagging = fmt.Errorf("%w: this node is behind the leader", limiter.ErrTryAgain)

// The reasons for which a node does not start, or stops.
var (
	ErrDiverged = errors.New("this node's state differs from that of a majority of the nodes")
	ErrDisputed = errors.New("this node's state differs from another node's, and no majority of the voters could " +
		"be asked which of them is right")
	ErrRemoved = errors.New("this node was removed from the cluster")
	ErrDamaged = errors.New("the data directory is damaged, and nothing in it was changed: keep it, and let this " +
		"node rejoin with an empty directory; if no other node has the state, restore a backup: " +
		"docs/operations.md#a-file-is-damaged")
	ErrOtherNode  = errors.New("the data directory belongs to another node")
	ErrStandalone = errors.New("the data directory was made without --node-id and --durability, which need one of " +
		"another form: start without these flags, or move the state: make a backup, and give weir restore these " +
		"flags and an empty directory: docs/operations.md#backup-and-restore")
	ErrRestoring = errors.New("a restore to the data directory is running or was interrupted: restore the backup again")
	ErrLostState = errors.New("the cluster has a node with this id, but this data directory is empty: its votes and " +
		"its log are lost with its disk, so remove that node and start this one again")
	ErrRemovedID = errors.New("a node with this id was removed from the cluster for good")
	ErrNotMember = errors.New("this node is not a member of the cluster yet")
	ErrClockKind = errors.New("this node and the cluster use different kinds of clock")
	ErrStuck     = errors.New("stuck")
	ErrLogFailed = errors.New("the replicated log cannot be written or read")
	ErrNewer     = errors.New("the log holds entries of a newer version of weir")
	ErrOlder     = errors.New(
		"the cluster writes a log format that this version of weir does not know: start a newer version")
	ErrBadEntry = errors.New("the log holds an entry that cannot be read")
	ErrNoSecret = errors.New(
		"the inter-node port is reachable from other machines and needs certificates or a cluster secret")
	ErrUnavailable = errors.New("not possible at present")
	ErrGroups      = errors.New("the cluster has another number of Raft groups than this node has opened: start this " +
		"node again, it has recorded the number")
)

// EndsGroup reports whether an error of a process with several Raft groups ends its own group alone. The disk and the
// log are in order, and the other groups do not depend on it. A dispute ends the process, because it needs a restart.
func EndsGroup(err error) bool { return errors.Is(err, ErrRemoved) || errors.Is(err, ErrDiverged) }
