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

// tell counts one operation that was carried out.
func (o *outcomes) tell(op *engine.Op, d *engine.Decision) {
	switch {
	case !decides(op):
	case d.Allowed != 0:
		o.allowed.Add(1)
	default:
		o.limited.Add(1)
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

// entry counts the checks of a pipeline on a page, those that name one policy in a row
// at once.
type entry struct {
	page             *policyPage
	name             []byte
	of               *outcomes // nil: there is no such policy
	allowed, limited int64     // not yet on the page
}

// tell counts a check. What was admitted counts for each of its policies, what was
// denied for the one that the answer names.
func (e *entry) tell(op *engine.Op, d *engine.Decision) {
	if d.Allowed == 0 {
		e.turnTo(op.PairAt(int(d.Pair)).Policy)
		e.limited++
		return
	}
	e.turnTo(op.Text)
	e.allowed++
	for i := range op.Also {
		e.turnTo(op.Also[i].Policy)
		e.allowed++
	}
}

// turnTo makes what is counted next count for a policy.
func (e *entry) turnTo(name []byte) {
	if e.of != nil && string(name) == string(e.name) {
		return
	}
	e.write()
	e.name, e.of = name, e.page.of[string(name)]
}

// write puts on the page what was counted.
func (e *entry) write() {
	if e.of != nil {
		e.of.add(e.allowed, e.limited)
	}
	e.allowed, e.limited = 0, 0
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
