package engine

import (
	"github.com/weir-project/weir/engine/internal/arena"
	"github.com/weir-project/weir/engine/internal/store"
)

// The usage of a policy is spread over all shards. Removing it within the policy change would block every
// decision for as long as a walk over the table takes. The change holds the locks of all shards, and only
// records in each shard which usage is forgotten. A shard removes that usage before any other access, so its
// decisions do not depend on the delay.

// forgottenUsage names usage to remove: the limiters of a policy's limits, from one limit on.
type forgottenUsage struct {
	policy string
	limit  int
}

// maxForgotten bounds the pending removals of a shard that no operation uses. One walk removes all of them, and
// compares each limiter with each pending removal.
const maxForgotten = 16

// flushForgotten removes the usage that was recorded as forgotten. Every function that looks up limiters in a
// shard calls it first.
func (s *shard) flushForgotten() {
	if len(s.forgotten) > 0 || s.flushed != 0 {
		s.forgetUsage()
	}
}

// forgetUsage walks over the shard and removes the forgotten usage.
func (s *shard) forgetUsage() {
	var found []arena.Ref
	for g := range s.Index.Segments() {
		g.Each(func(r arena.Ref) {
			s.EachCell(r, func(c *store.Cell) {
				if s.isForgotten(c) && (len(found) == 0 || found[len(found)-1] != r) {
					found = append(found, r)
				}
			})
		})
	}
	for _, r := range found {
		s.EachCell(r, func(c *store.Cell) {
			if s.isForgotten(c) {
				s.dropForgotten(c)
			}
		})
	}
	s.forgotten, s.flushed = nil, 0
}

func (s *shard) isForgotten(c *store.Cell) bool {
	if s.isFlushed(c) {
		return true
	}
	policy, limit, _, ok := SplitName(c.Key)
	if !ok || c.Space != store.Limiters {
		return false
	}
	for i := range s.forgotten {
		if s.forgotten[i].policy == string(policy) && limit >= s.forgotten[i].limit {
			return true
		}
	}
	return false
}
