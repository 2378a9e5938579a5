package server

import (
	"sync"
	"sync/atomic"

	"github.com/weir-project/weir/engine"
)

// outcomes counts what clients were told: each request once, on the node that took
// it. (The table counts what it carried out, which in a cluster every node does.)
type outcomes struct{ allowed, limited atomic.Int64 }

func (o *outcomes) add(allowed, limited int64) {
	if allowed != 0 {
		o.allowed.Add(allowed)
	}
	if limited != 0 {
		o.limited.Add(limited)
	}
}

func (o *outcomes) reset() {
	o.allowed.Store(0)
	o.limited.Store(0)
}

// decides reports whether an operation asks for something that a limit may refuse: a
// look, a dry run or a settling command does not.
func decides(op *engine.Op) bool {
	switch op.Code {
	case engine.OpTake, engine.OpCheck, engine.OpReserve:
		return op.Cost > 0 && !op.Dry
	case engine.OpIncr:
		return op.Incr.By > 0
	case engine.OpScript:
		return true
	}
	return false
}

// tell counts the outcomes of the operations of one command, and of the policies
// they name.
func (s *Server) tell(total *outcomes, ops []engine.Op, ds []engine.Decision) {
	var allowed, limited int64
	for i := range ops {
		op, d := &ops[i], &ds[i]
		if d.Status != engine.OK || !decides(op) {
			continue
		}
		if d.Allowed != 0 {
			allowed++
		} else {
			limited++
			s.state.recent.note(op, d)
		}
		if op.Code == engine.OpCheck || op.Code == engine.OpReserve {
			s.state.book.tell(s.lim.Policies(), op, d)
		}
	}
	total.add(allowed, limited)
}

// policyBook keeps the outcomes of each policy that there is, and no others: the
// names that clients invent never get into it.
type policyBook struct {
	page atomic.Pointer[policyPage]
	mu   sync.Mutex // held while a page is turned
}

// policyPage is the book for one set of policies. It does not change but for its
// counters.
type policyPage struct {
	set *engine.Policies
	of  map[string]*outcomes
}

// tell counts a check. What was admitted counts for each of its policies, what was
// denied for the one that the answer names.
func (b *policyBook) tell(set *engine.Policies, op *engine.Op, d *engine.Decision) {
	page := b.at(set)
	if d.Allowed == 0 {
		if o := page.of[string(op.PairAt(int(d.Pair)).Policy)]; o != nil {
			o.limited.Add(1)
		}
		return
	}
	for i := range 1 + len(op.Also) {
		if o := page.of[string(op.PairAt(i).Policy)]; o != nil {
			o.allowed.Add(1)
		}
	}
}

// at returns the page for a set of policies; the counters of those that stay go on.
func (b *policyBook) at(set *engine.Policies) *policyPage {
	if page := b.page.Load(); page != nil && page.set == set {
		return page
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	old := b.page.Load()
	if old != nil && old.set == set {
		return old
	}
	page := &policyPage{set: set, of: make(map[string]*outcomes, set.Len())}
	for _, p := range set.All() {
		if old != nil {
			page.of[p.Name] = old.of[p.Name]
		}
		if page.of[p.Name] == nil {
			page.of[p.Name] = new(outcomes)
		}
	}
	b.page.Store(page)
	return page
}
