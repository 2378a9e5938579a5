package raftstore

import "github.com/weir-project/weir/raftstore/internal/failure"

// The outcomes that are returned to a caller. For any other error the outcome is unknown.
var (
	ErrTryAgain   = failure.ErrTryAgain
	ErrNoLeader   = failure.ErrNoLeader
	ErrNotLeader  = failure.ErrNotLeader
	ErrUnsound    = failure.ErrUnsound
	ErrOldMember  = failure.ErrOldMember
	ErrTooLarge   = failure.ErrTooLarge
	ErrOverloaded = failure.ErrOverloaded
	ErrUnknown    = failure.ErrUnknown
)

// The reasons for which a node does not start, or stops.
var (
	ErrDiverged   = failure.ErrDiverged
	ErrDisputed   = failure.ErrDisputed
	ErrRemoved    = failure.ErrRemoved
	ErrDamaged    = failure.ErrDamaged
	ErrOtherNode  = failure.ErrOtherNode
	ErrStandalone = failure.ErrStandalone
	ErrRestoring  = failure.ErrRestoring
	ErrLostState  = failure.ErrLostState
	ErrSpentID    = failure.ErrSpentID
	ErrClockKind  = failure.ErrClockKind
	ErrStuck      = failure.ErrStuck
	ErrLogFailed  = failure.ErrLogFailed
	ErrNewer      = failure.ErrNewer
	ErrOlder      = failure.ErrOlder
	ErrBadEntry   = failure.ErrBadEntry
)
