package ledger

import (
	"errors"
	"fmt"
	"sync"
)

// ErrDiverged reports that two nodes have applied the same entries and have different states.
var ErrDiverged = errors.New("replicas diverged")

// Applied names an entry of the log of a Raft group.
type Applied struct {
	Group int
	Index uint64
}

// Digest is the state of a node after an entry, as the node reports it.
type Digest struct {
	Node string
	Last Applied // the last entry applied
	Hash string
}

// Replicas compares digests as they arrive. It is safe for use by several goroutines.
type Replicas struct {
	mu       sync.Mutex
	seen     map[Applied]Digest // the first at each entry
	compared int
}

// maxDigests bounds the stored digests. All are dropped then, because live nodes have passed nearly all of the entries.
const maxDigests = 1 << 16

// Add compares a digest with an earlier one of the same entry.
func (r *Replicas) Add(d Digest) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen == nil {
		r.seen = map[Applied]Digest{}
	}
	other, ok := r.seen[d.Last]
	switch {
	case !ok:
		if len(r.seen) == maxDigests {
			clear(r.seen)
		}
		r.seen[d.Last] = d
	case other.Hash != d.Hash:
		return fmt.Errorf("%w at entry %d of group %d: %s has %s, %s has %s", ErrDiverged, d.Last.Index, d.Last.Group,
			other.Node, other.Hash, d.Node, d.Hash)
	case other.Node != d.Node:
		r.compared++
	}
	return nil
}

// Compared returns how often two nodes were compared at one entry. 0 proves nothing.
func (r *Replicas) Compared() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.compared
}
