package engine

import (
	"slices"

	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/store"
)

// nextState is the state that a decision leaves behind, of an algorithm whose state is a
// few numbers, as many of these as it needs. It is found without changing anything, so that a check can decide under
// all of its limits before it takes from any.
type nextState struct{ a, b, c uint64 }

// previewable reports whether next knows the algorithm.
func previewable(a Algorithm) bool {
	return a == TokenBucket || a == FixedWindow || a == LeakyBucket || a == SlidingCounter
}

// next decides under the operation's limit and returns what it leaves behind if admitted
// or, under another limit than before, denied.
func (s *shard) next(c *store.Cell, op *Op, d *Decision) nextState {
	switch op.Limit.Algorithm {
	case FixedWindow:
		return s.nextFixed(c, op, d)
	case SlidingCounter:
		return s.nextSlidingCounter(c, op, d)
	}
	return s.nextBucket(c, op, d)
}

// put gives the cell's entry the next state of a decision, if it leaves one, and
// reports whether something was taken.
func (s *shard) put(c *store.Cell, op *Op, d *Decision, n nextState) bool {
	if !s.claim(c, op, d) {
		return false
	}
	n.write(c.Entry)
	s.Touched(c)
	return d.Allowed > 0
}

func (n *nextState) write(e store.Entry) {
	if store.IsBucket(e.Kind()) {
		store.SetBucket(e, arith.Uint128{Hi: n.a, Lo: n.b})
		return
	}
	st := e.State()
	le.PutUint64(st, n.a)
	le.PutUint64(st[8:], n.b)
	if e.Kind() == uint8(SlidingCounter) {
		le.PutUint64(st[16:], n.c)
	}
}

// foreseen reports whether the policy has one limit, but not of strikes, or only limits
// that next knows.
func (p *Policy) foreseen() bool {
	if len(p.Limits) == 1 {
		return p.Limits[0].Limit.Algorithm != Strike
	}
	return !slices.ContainsFunc(p.Limits, func(l PolicyLimit) bool { return !previewable(l.Limit.Algorithm) })
}
