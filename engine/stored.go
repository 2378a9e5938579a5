package engine

import (
	"github.com/weir-project/weir/engine/internal/arena"
	"github.com/weir-project/weir/engine/internal/store"
)

// OrderKey returns the part of a storage key that orders changes. If two changes have the same part, they
// must be loaded in the order in which Drain handed them out. All limiters of a policy for one key have the same part,
// because they may be stored together or one by one. So have the allocations of a limiter.
func OrderKey(key []byte) []byte {
	if len(key) < 2 {
		return key
	}
	switch key[0] {
	case store.StorageKinds[store.Limiters], store.StorageKinds[store.Bundles]:
		return routingKey(key[1:])
	case store.StorageKinds[store.Allocations]:
		return key[1:]
	case store.AllocationBlocks:
		if name, _, ok := store.SplitBlockKey(key[1:]); ok {
			return name
		}
	}
	return key
}

// Reserve prepares an empty table for about this many entries, so that loading them is faster.
func (t *Table) Reserve(entries int64) {
	t.eachShard(Stamp{}, func(s *shard) {
		if s.Keys() == 0 && s.Counts.Entries[store.KindToken] == 0 {
			s.Index.Reserve(entries / int64(len(t.shards)))
		}
	})
}

// StateHash returns a hash of all state that decisions at or after the stamp depend on: policies, and entries of
// all kinds that are not idle. Tables that carried out the same operations at the same stamps have the same
// hash. The number of shards, collection, storing and loading do not change it. Tables that differ in one entry
// have different hashes, except with a chance of 1 in 2^64.
//
// StateHash locks one segment at a time. To hash a consistent state, the caller must stop decisions meanwhile.
func (t *Table) StateHash(at Stamp) (sum uint64) {
	h := store.NewHasher()
	for full := uint64(0); ; {
		full = t.lookSegment(at, full, func(s *shard, g *store.Segment) {
			g.Each(func(r arena.Ref) {
				s.EachView(r, func(e store.Entry, live bool) {
					if live {
						sum += h.Entry(&s.Store, e)
					}
				})
			})
		})
		if full == 0 {
			return sum + hashPolicies(&h, t.policies.Load()) + t.order.hash(&h) + t.hashEvents(&h)
		}
	}
}

// Renew sets the dirty bits of entries that have not changed. It serves a store that keeps changes in order:
// after a whole rewrite pass, the store no longer needs the changes drained before the pass.
//
// A pass begins at cursor 0 and continues at the cursor that Renew returns, until that is 0. Each call renews
// at least the given number of entries. A pass may omit entries that are added or removed meanwhile, because
// Drain hands these out anyway. Renew must not run concurrently with itself.
func (t *Table) Renew(cursor uint64, entries int) (next uint64) {
	if cursor == 0 {
		t.renewPolicies()
		t.events.Renew(false)
	}
	for n := 0; ; n++ { // n counts a segment as one more entry, which bounds a walk over empty segments
		cursor = t.lookSegment(Stamp{}, cursor, func(s *shard, g *store.Segment) {
			n += g.Size()
			g.Each(s.renew)
		})
		if cursor == 0 || n >= entries {
			return cursor
		}
	}
}

// Usage returns the number of entries of all kinds in the table, idle entries included, and the bytes they
// take.
func (t *Table) Usage() (entries, bytes int64) {
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		for _, n := range s.Counts.Entries {
			entries += n
		}
		bytes += s.Slab.UsedBytes() + s.ListBytes()
		s.mu.Unlock()
	}
	return entries, bytes
}

// renew makes the next Drain hand out the whole entry.
func (s *shard) renew(r arena.Ref) {
	s.Unkeep(r)
	s.Changed(r)
}
