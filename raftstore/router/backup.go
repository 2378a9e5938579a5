package router

import (
	"errors"
	"fmt"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/persistence"
)

var _ limiter.Archiver = (*Router)(nil)

// Backup returns the state of all groups for raftstore.Restore; see raftstore.Node.Backup. Each group is copied at a
// log entry of its own, one after the other. The first group, which decides about policies, is the last: so the
// policies of the backup are not older than the limiters.
func (r *Router) Backup() (*limiter.Backup, error) {
	if g := r.only(); g != nil {
		return g.Backup()
	}
	taken := make([]*limiter.Backup, len(r.all()))
	for i := len(taken) - 1; i >= 0; i-- {
		err := r.reach(i, func(g reachable) (err error) {
			taken[i], err = g.Backup()
			return err
		})
		if err != nil {
			for _, t := range taken[i+1:] {
				err = errors.Join(err, t.Close())
			}
			return nil, fmt.Errorf("group %d: %w", i, err)
		}
	}
	return persistence.JoinBackups(taken)
}
