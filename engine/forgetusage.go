package engine

import (
	"github.com/weir-project/weir/engine/internal/arena"
	"github.com/weir-project/weir/engine/internal/store"
)

// The usage of a policy is spread over all shards. Looking for it in all of them at
// once would hold up every decision for as long as a walk over the whole table takes. So
// a change only tells the shards, whose locks it holds, what is gone; each forgets it
// before it does anything else, which for its own decisions is the same.

// gone is usage that is to be forgotten: of a policy, from one of its limits on.
type gone struct {
	policy string
	limit  int
}

// maxGone bounds what a shard that nobody uses has yet to forget. One walk forgets all
// of it; each limiter is compared with each.
const maxGone = 16

// settleGone makes good what the shard has yet to forget. Whoever looks for limiters in
// a shard calls it first.
func (s *shard) settleGone() {
	if len(s.gone) > 0 {
		s.forgetGone()
	}
}

func (s *shard) forgetGone() {
	var found []arena.Ref
	for g := range s.Index.Segments() {
		g.Each(func(r arena.Ref) {
			if s.isGone(s.Slab.At(r)) {
				found = append(found, r)
			}
		})
	}
	for _, r := range found {
		s.DropRef(r)
	}
	s.gone = nil
}

func (s *shard) isGone(e store.Entry) bool {
	policy, limit, _, ok := SplitName(e.Key())
	if !ok || store.SpaceOf(e.Kind()) != store.Limiters {
		return false
	}
	for i := range s.gone {
		if s.gone[i].policy == string(policy) && limit >= s.gone[i].limit {
			return true
		}
	}
	return false
}
