package raftstore

import (
	"fmt"

	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/internal/identity"
	"github.com/weir-project/weir/raftstore/internal/raftlog"
)

// checkKept refuses a member that has lost its log, and its term and vote with it, or both
// its images and its entries. It judges only Fsync: a loss of power may take a log that is
// not synced.
func (r *recovery) checkKept() error {
	if !r.identity.Joined || r.options.Durability != identity.Fsync {
		return nil
	}
	lost := func(what string) error {
		return fmt.Errorf("%w (it is a member's since entry %d, and has %s)", failure.ErrDamaged, r.identity.JoinedAt, what)
	}
	switch term, _ := r.logs.GetUint64(raftlog.KeyTerm); {
	case term == 0 && !r.identity.Restored:
		return lost("no term in its log")
	case term > 0 && r.identity.Restored:
		if err := r.identity.HasLog(); err != nil {
			return err
		}
	}
	infos, err := r.images.List()
	if err != nil || len(infos) > 0 {
		return err
	}
	last, err := r.logs.LastIndex()
	if err == nil && last == 0 {
		err = lost("neither an image nor a log entry")
	}
	return err
}

// dropCompactedLog empties a log that ends before the newest image. The Raft library
// installs an image first and removes the log before it later; after a crash in
// between, the next entry would leave a gap, which the log refuses.
func (r *recovery) dropCompactedLog() error {
	infos, err := r.images.List()
	if err != nil || len(infos) == 0 {
		return err
	}
	last, err := r.logs.LastIndex()
	if err != nil || last >= infos[0].Index {
		return err
	}
	return raftlog.EmptyLog(r.logs)
}
