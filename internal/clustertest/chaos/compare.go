package chaos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-project/weir/internal/clustertest/ledger"
)

// equalTimeout is how long nodes without traffic may take to reach the same index.
const equalTimeout = 10 * time.Second

// ErrNotComparable reports that healthy nodes without traffic never reached the same index.
var ErrNotComparable = errors.New("nodes did not come to the same applied index")

// compare waits until all nodes that have a group have applied the same index of it, and compares their states there.
func (r *run) compare(ctx context.Context) error {
	var last error
	err := poll(ctx, equalTimeout, func() bool {
		applied, have := map[ledger.Applied]bool{}, map[int]int{}
		for _, n := range r.cluster.Nodes {
			all, err := n.Digests()
			if err != nil {
				last = err
				return false
			}
			for _, d := range all {
				if last = r.watch.Replicas.Add(d); last != nil {
					return true
				}
				applied[d.Last] = true
				have[d.Last.Group]++
			}
		}
		for group := range r.cluster.Groups {
			if want := cmp.Or(r.cluster.Replicas, len(r.cluster.Nodes)); have[group] < want {
				last = fmt.Errorf("%d nodes of %d have group %d", have[group], want, group)
				return false
			}
		}
		return len(applied) == r.cluster.Groups
	})
	if err != nil {
		return fmt.Errorf("%w within %v: %w", ErrNotComparable, equalTimeout, errors.Join(last, err))
	}
	return last
}
