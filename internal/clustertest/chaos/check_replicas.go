package chaos

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// ErrDiverged reports that two nodes have applied the same entries and have different states.
var ErrDiverged = errors.New("replicas diverged")

// Digest is the state of one node, as the node reports it.
type Digest struct {
	Node    string
	Applied uint64 // index of the last entry applied
	Hash    string // of the state after that entry
}

// Replicas compares digests as they arrive. It is safe for use by several goroutines.
type Replicas struct {
	mu       sync.Mutex
	seen     map[uint64]Digest // the first at each index
	compared int
}

// maxDigests bounds the stored digests. The oldest indexes are dropped first, because every live node has passed them
// long ago.
const maxDigests = 1 << 16

// Add takes a digest and compares it with that of another node at the same index.
func (r *Replicas) Add(d Digest) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen == nil {
		r.seen = map[uint64]Digest{}
	}
	other, ok := r.seen[d.Applied]
	if !ok {
		r.remember(d)
		return nil
	}
	if other.Node != d.Node {
		r.compared++
	}
	if other.Hash != d.Hash {
		return fmt.Errorf("%w at index %d: %s has %s, %s has %s", ErrDiverged, d.Applied, other.Node,
			other.Hash, d.Node, d.Hash)
	}
	return nil
}

func (r *Replicas) remember(d Digest) {
	if len(r.seen) == maxDigests {
		indexes := slices.Sorted(maps.Keys(r.seen))
		for _, index := range indexes[:maxDigests/2] {
			delete(r.seen, index)
		}
	}
	r.seen[d.Applied] = d
}

// Compared returns how often two nodes were compared at one index. 0 proves nothing.
func (r *Replicas) Compared() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.compared
}
