package chaos

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// equalTimeout is how long nodes without traffic may take to reach the same index.
const equalTimeout = 10 * time.Second

// ErrNotComparable reports that healthy nodes without traffic never reached the same index.
var ErrNotComparable = errors.New("nodes did not come to the same applied index")

// compare waits until all nodes have applied the same index, and compares their states there.
func (r *run) compare(ctx context.Context) error {
	var last error
	err := poll(ctx, equalTimeout, func() bool {
		indexes := map[uint64]bool{}
		for _, n := range r.cluster.Nodes {
			d, err := n.Digest()
			if err != nil {
				last = err
				return false
			}
			if last = r.watch.Replicas.Add(d); last != nil {
				return true
			}
			indexes[d.Last.Index] = true
		}
		return len(indexes) == 1
	})
	if err != nil {
		return fmt.Errorf("%w within %v: %w", ErrNotComparable, equalTimeout, errors.Join(last, err))
	}
	return last
}
