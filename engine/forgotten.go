package engine

import (
	"github.com/weir-project/weir/engine/internal/arena"
	"github.com/weir-project/weir/engine/internal/store"
)

// The usage of a policy is spread over all shards. A change of the policy that removed it
// from all of them would block every decision for as long as a walk over the table takes.
// The change only notes in each shard, whose lock it holds, what is forgotten. A shard
// removes it before it does anything else, so its decisions cannot tell the difference.

// forgottenUsage is usage that is to be forgotten: of a policy, from one of its limits on.
type forgottenUsage struct {
	policy string
	limit  int
}

// maxForgotten bounds what a shard that nobody uses has yet to forget. One walk forgets all
// of it; each limiter is compared with each.
const maxForgotten = 16

// flushForgotten removes the usage that was noted as forgotten. Every function that looks for
// limiters in a shard calls it first.
func (s *shard) flushForgotten() {
	if len(s.forgotten) > 0 {
		s.forgetUsage()
	}
}

// forgetUsage walks over the shard and removes what is forgotten.
func (s *shard) forgetUsage() {
	var found []arena.Ref
	for g := range s.Index.Segments() {
		g.Each(func(r arena.Ref) {
			if s.isForgotten(s.Slab.At(r)) {
				found = append(found, r)
			}
		})
	}
	for _, r := range found {
		s.DropRef(r)
	}
	s.forgotten = nil
}

func (s *shard) isForgotten(e store.Entry) bool {
	policy, limit, _, ok := SplitName(e.Key())
	if !ok || store.SpaceOf(e.Kind()) != store.Limiters {
		return false
	}
	for i := range s.forgotten {
		if s.forgotten[i].policy == string(policy) && limit >= s.forgotten[i].limit {
			return true
		}
	}
	return false
}
