package raftstore

import (
	"errors"
	"os"

	wal "github.com/hashicorp/raft-wal"
)

// stopper returns what ends the process at a fault that a node cannot live with.
func (n *Node) stopper(onFatal func(error)) func(error) {
	if onFatal != nil {
		return onFatal
	}
	return func(err error) {
		n.log.Error("this node cannot go on", "error", err, "restart", restartAdvice(err))
		os.Exit(1)
	}
}

// restartAdvice says whether starting the node again is safe.
func restartAdvice(err error) string {
	switch {
	case errors.Is(err, ErrDiverged), errors.Is(err, wal.ErrCorrupt):
		return "no: remove the node from the cluster, empty its data directory and start it again"
	case errors.Is(err, ErrRemoved):
		return "no: to have it join again, empty its data directory first"
	case errors.Is(err, ErrLostState):
		return "no: remove the node of this id from the cluster first"
	case errors.Is(err, ErrSpentID):
		return "yes: it joins as another node"
	case errors.Is(err, ErrDisputed):
		return "yes, when the other nodes are up again: a majority of them tells which node is odd"
	case errors.Is(err, ErrNewer):
		return "no: run the newer version"
	default:
		return "yes, once the cause is gone: everything this node promised is on its disk"
	}
}

// diverged ends the process of a node whose state a majority contradicts, and marks
// its directory: it must not start again either.
func (n *Node) diverged(err error) {
	n.identity.Lock()
	n.identity.Diverged = err.Error()
	if e := writeIdentity(n.options.FS, n.options.DataDir, n.identity.identity); e != nil {
		err = errors.Join(err, e)
	}
	n.identity.Unlock()
	n.fatal(err)
}
