package failure

import (
	"errors"

	wal "github.com/hashicorp/raft-wal"

	"github.com/weir-project/weir/persistence"
)

// The advice about a data directory that must not be used as it is. The directory may be
// the only copy of what was acknowledged, so no advice deletes it.
const (
	adviceAlone = "keep this data directory: it may be the only copy. Restore the newest backup into another " +
		"directory (docs/operations.md#a-file-is-damaged)"
	AdviceRejoin = "first check that a majority serves without this node (weir cluster status at another node). Then " +
		"remove this node (weir cluster remove), move its data directory away and start it again: it joins " +
		"from the others. Without a majority, " +
		"keep the directories of all nodes (docs/clustering.md#a-damaged-log)"
)

// DamageAdvice returns what to do when this node cannot use its own copy of the state. alone means that no other node
// has a copy.
func DamageAdvice(alone bool) string {
	if alone {
		return adviceAlone
	}
	return AdviceRejoin
}

// RestartAdvice returns whether it is safe to start the node again after err, and what to do otherwise. alone means
// that no other node has a copy of the state.
func RestartAdvice(err error, alone bool) string {
	switch {
	case errors.Is(err, ErrDiverged), errors.Is(err, wal.ErrCorrupt), errors.Is(err, persistence.ErrDamagedLive):
		return "no: " + DamageAdvice(alone)
	case errors.Is(err, ErrRemoved):
		return "no: to have it join again, move its data directory away first"
	case errors.Is(err, ErrLostState):
		return "no: remove the node of this id from the cluster first"
	case errors.Is(err, ErrGroups):
		return "yes: it opens as many groups as the cluster has"
	case errors.Is(err, ErrRemovedID):
		return "yes: it joins as a new node"
	case errors.Is(err, ErrDisputed):
		return "yes, when the other nodes are up again: a majority of them shows which node differs"
	case errors.Is(err, ErrNewer):
		return "no: run the newer version"
	default:
		return "yes, after the cause is removed: all votes and acknowledged entries of this node are on its disk"
	}
}
