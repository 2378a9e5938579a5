package service

import (
	"sync"
	"sync/atomic"

	"github.com/weir-project/weir/engine"
)

// Outcomes counts what clients were told: each request once, on the node that took
// it. (The table counts what it carried out, which in a cluster every node does.)
type Outcomes struct{ Allowed, Limited atomic.Int64 }

func (o *Outcomes) add(allowed, limited int64) {
	if allowed != 0 {
		o.Allowed.Add(allowed)
	}
	if limited != 0 {
		o.Limited.Add(limited)
	}
}

// Tell counts one operation that was carried out.
func (o *Outcomes) Tell(op *engine.Op, d *engine.Decision) {
	switch {
	case !decides(op):
	case d.Allowed != 0:
		o.Allowed.Add(1)
	default:
		o.Limited.Add(1)
	}
}

func (o *Outcomes) reset() {
	o.Allowed.Store(0)
	o.Limited.Store(0)
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

// PolicyStats keeps the outcomes of each policy that there is, and no others: the
// names that clients invent never get into it.
type PolicyStats struct {
	page atomic.Pointer[policyPage]
	mu   sync.Mutex // held while a page is turned
}

// policyPage is the book for one set of policies. It does not change but for its
// counters.
type policyPage struct {
	set *engine.Policies
	Of  map[string]*Outcomes
}

// entry counts the checks of a pipeline on a page, those that name one policy in a row
// at once.
type entry struct {
	page             *policyPage
	name             []byte
	of               *Outcomes // nil: there is no such policy
	allowed, limited int64     // not yet on the page
}

// Tell counts a check. What was admitted counts for each of its policies, what was
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
	e.name, e.of = name, e.page.Of[string(name)]
}

// write puts on the page what was counted.
func (e *entry) write() {
	if e.of != nil {
		e.of.add(e.allowed, e.limited)
	}
	e.allowed, e.limited = 0, 0
}

// At returns the page for a set of policies; the counters of those that stay go on.
func (b *PolicyStats) At(set *engine.Policies) *policyPage {
	if page := b.page.Load(); page != nil && page.set == set {
		return page
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	old := b.page.Load()
	if old != nil && old.set == set {
		return old
	}
	page := &policyPage{set: set, Of: make(map[string]*Outcomes, set.Len())}
	for _, p := range set.All() {
		if old != nil {
			page.Of[p.Name] = old.Of[p.Name]
		}
		if page.Of[p.Name] == nil {
			page.Of[p.Name] = new(Outcomes)
		}
	}
	b.page.Store(page)
	return page
}
