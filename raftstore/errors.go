package raftstore

import "github.com/weir-project/weir/raftstore/internal/failure"

// ErrInvalidOp: an operation is not valid for the log, and nothing was counted. Package limiter defines the other
// outcomes that are returned to a caller.
var ErrInvalidOp = failure.ErrInvalidOp

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
	ErrRemovedID  = failure.ErrRemovedID
	ErrClockKind  = failure.ErrClockKind
	ErrStuck      = failure.ErrStuck
	ErrLogFailed  = failure.ErrLogFailed
	ErrNewer      = failure.ErrNewer
	ErrOlder      = failure.ErrOlder
	ErrBadEntry   = failure.ErrBadEntry
)
