package engine

import (
	"github.com/weir-project/weir/engine/internal/arena"
	"github.com/weir-project/weir/engine/internal/store"
)

// StateHash is a hash of everything that decisions at or after the stamp depend on:
// policies, and limiters, blocks and remembered IDs that are not idle. Tables that carried out the
// same operations at the same stamps have the same hash, whatever their shards, their
// collecting and their being stored and loaded again; tables that differ in one entry
// differ in it, but for one chance in 2^64. The table is locked a segment at a time:
// for the hash of one state nothing may be decided meanwhile.
func (t *Table) StateHash(at Stamp) (sum uint64) {
	h := store.NewHasher()
	for full := uint64(0); ; {
		full = t.lookSegment(at, full, func(s *shard, g *store.Segment) {
			g.Each(func(r arena.Ref) {
				if e, live := s.View(r); live {
					sum += h.Entry(&s.Store, e)
				}
			})
		})
		if full == 0 {
			return sum + hashPolicies(&h, t.policies.Load())
		}
	}
}

// hashPolicies hashes a set; the order does not matter.
func hashPolicies(h *store.Hasher, set *Policies) (sum uint64) {
	for name, p := range set.byName {
		b := append([]byte{policyClass, byte(len(name))}, name...)
		sum += h.Hash(p.Append(b))
	}
	return sum
}
