package raftstore

import "github.com/weir-project/weir/raftstore/internal/failure"

// Reasons for which a node does not start, or stops. Package failure has all of them.
var (
	ErrDiverged  = failure.ErrDiverged
	ErrDisputed  = failure.ErrDisputed
	ErrRemoved   = failure.ErrRemoved
	ErrLostState = failure.ErrLostState
	ErrRemovedID = failure.ErrRemovedID
	ErrStuck     = failure.ErrStuck
	ErrLogFailed = failure.ErrLogFailed
	ErrNewer     = failure.ErrNewer
	ErrBadEntry  = failure.ErrBadEntry
)
