package raftstore

import (
	"errors"
	"os"

	wal "github.com/hashicorp/raft-wal"

	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/raftstore/internal/failure"
)

// stopper returns what ends the process at a fault that a node cannot live with.
func (h *host) stopper(onFatal func(error)) func(error) {
	if onFatal != nil {
		return onFatal
	}
	return func(err error) {
		h.log.Error("this node cannot go on", "error", err, "restart", restartAdvice(err, h.alone()))
		os.Exit(1)
	}
}

// The advice about a data directory that must not be used as it is. The directory may be
// the only copy of what was acknowledged, so no advice deletes it.
const (
	adviceAlone = "keep this data directory: it may be the only copy. Restore the newest backup into another one " +
		"(docs/operations.md#a-file-is-damaged)"
	adviceRejoin = "first see that a majority serves without this node (weir cluster status at another one). Then remove this node " +
		"(weir cluster remove), move its data directory away and start it again: it joins from the others. Without a majority, " +
		"keep the directories of all nodes (docs/clustering.md#a-damaged-log)"
)

// damageAdvice returns what to do when this node cannot use its own copy of the state.
func damageAdvice(alone bool) string {
	if alone {
		return adviceAlone
	}
	return adviceRejoin
}

// restartAdvice says whether starting the node again is safe, and what to do otherwise.
func restartAdvice(err error, alone bool) string {
	switch {
	case errors.Is(err, failure.ErrDiverged), errors.Is(err, wal.ErrCorrupt), errors.Is(err, persistence.ErrDamagedLive):
		return "no: " + damageAdvice(alone)
	case errors.Is(err, failure.ErrRemoved):
		return "no: to have it join again, move its data directory away first"
	case errors.Is(err, failure.ErrLostState):
		return "no: remove the node of this id from the cluster first"
	case errors.Is(err, failure.ErrSpentID):
		return "yes: it joins as another node"
	case errors.Is(err, failure.ErrDisputed):
		return "yes, when the other nodes are up again: a majority of them tells which node is odd"
	case errors.Is(err, failure.ErrNewer):
		return "no: run the newer version"
	default:
		return "yes, once the cause is gone: everything this node promised is on its disk"
	}
}

// alone reports whether no other node has this one's state.
func (h *host) alone() bool {
	if members := h.peers.members.Load(); members != nil && len(*members) > 0 {
		return len(*members) == 1
	}
	return h.options.Expect <= 1 // which more than half of --join is never
}
