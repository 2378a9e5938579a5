package recovery

import (
	"fmt"

	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/internal/identity"
	"github.com/weir-project/weir/raftstore/internal/raftlog"
)

// CheckKept returns an error if a member has lost its log with its term and vote, or all its images and entries. It
// checks only nodes with the durability Fsync, because a loss of power may take a log that is not synced.
func (r *Recovery) CheckKept() error {
	if !r.Identity.Joined || r.Durability != identity.Fsync {
		return nil
	}
	lost := func(what string) error {
		return fmt.Errorf("%w (it belongs to a member since entry %d, and has %s)", failure.ErrDamaged,
			r.Identity.JoinedAt, what)
	}
	switch term, _ := r.Logs.GetUint64(raftlog.KeyTerm); {
	case term == 0 && !r.Identity.Restored:
		return lost("no term in its log")
	case term > 0 && r.Identity.Restored:
		if err := r.MarkHasLog(); err != nil {
			return err
		}
	}
	infos, err := r.Images.List()
	if err != nil || len(infos) > 0 {
		return err
	}
	last, err := r.Logs.LastIndex()
	if err == nil && last == 0 {
		err = lost("neither an image nor a log entry")
	}
	return err
}

// DropCompactedLog empties a log that ends before the newest image. The Raft library installs an image first and
// removes the compacted log later. After a crash in between, the next entry would leave a gap, which the log refuses.
func (r *Recovery) DropCompactedLog() error {
	infos, err := r.Images.List()
	if err != nil || len(infos) == 0 {
		return err
	}
	last, err := r.Logs.LastIndex()
	if err != nil || last >= infos[0].Index {
		return err
	}
	return raftlog.EmptyLog(r.Logs)
}
