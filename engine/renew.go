package engine

import (
	"github.com/weir-project/weir/engine/internal/arena"
	"github.com/weir-project/weir/engine/internal/store"
)

// Renew marks entries as changed though they are not, for a store that keeps changes in
// the order in which they came: what was drained before a whole round of Renew began is
// then of no more use to it. A round begins at cursor 0 and goes on with the cursor
// returned, at least the given number of entries at a time, until that is 0. What comes
// and goes meanwhile may be left out: Drain hands it out anyway. One caller at a time.
func (t *Table) Renew(cursor uint64, entries int) (next uint64) {
	if cursor == 0 {
		t.renewPolicies()
	}
	for n := 0; ; n++ { // a segment without entries costs a step as well
		cursor = t.lookSegment(Stamp{}, cursor, func(s *shard, g *store.Segment) {
			n += g.Size()
			g.Each(s.renew)
		})
		if cursor == 0 || n >= entries {
			return cursor
		}
	}
}

func (s *shard) renew(r arena.Ref) {
	store.UnkeepLog(s.Slab.At(r))
	s.Changed(r)
}

func (t *Table) renewPolicies() {
	for _, p := range t.policies.Load().All() {
		t.policyChanged(p.Name)
	}
}

// Usage is how many entries of all kinds the table holds, those that are idle
// included, and the bytes they take.
func (t *Table) Usage() (entries, bytes int64) {
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		for _, n := range s.Counts.Entries {
			entries += n
		}
		bytes += s.Slab.TakenBytes()
		s.mu.Unlock()
	}
	return entries, bytes
}
