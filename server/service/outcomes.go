package service

import (
	"sync"
	"sync/atomic"

	"github.com/weir-project/weir/engine"
)

// Outcomes counts the decisions that clients received: each request once, on the node that accepted it. The table, in
// contrast, counts executed operations, and every node of a cluster executes them.
type Outcomes struct{ Allowed, Limited atomic.Int64 }

func (o *Outcomes) add(allowed, limited int64) {
	if allowed != 0 {
		o.Allowed.Add(allowed)
	}
	if limited != 0 {
		o.Limited.Add(limited)
	}
}

// Tell counts one executed operation.
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

// decides reports whether a limit may deny the operation. A dry run cannot be denied, nor can a command that corrects
// or blocks, such as RL.REFUND or RL.RESET.
func decides(op *engine.Op) bool {
	switch op.Code {
	case engine.OpTake, engine.OpCheck, engine.OpReserve, engine.OpExtend:
		return op.Cost > 0 && !op.Dry
	case engine.OpIncr:
		return op.Incr.By > 0
	case engine.OpScript:
		return true
	}
	return false
}

// PolicyStats holds the outcomes of the existing policies only. Names that clients invent take no memory.
type PolicyStats struct {
	page atomic.Pointer[policyPage]
	mu   sync.Mutex // held while a new page replaces the old
}

// policyPage holds the counters for one set of policies. Only the counters change.
type policyPage struct {
	set *engine.Policies
	Of  map[string]*Outcomes
}

// entry accumulates the checks of a pipeline. It adds consecutive checks of one policy to the page at once.
type entry struct {
	page             *policyPage
	name             []byte
	of               *Outcomes // nil: the policy does not exist
	allowed, limited int64     // not yet added to the page
}

// tell counts a check. An admitted check counts for each of its policies, of several alternatives for those that pay. A
// denied check counts for the policy that the decision names.
func (e *entry) tell(op *engine.Op, d *engine.Decision) {
	if d.Allowed == 0 {
		e.turnTo(op.PairAt(int(d.Pair)).Policy)
		e.limited++
		return
	}
	_, paid := d.Paid()
	for i := range 1 + len(op.Also) {
		if paid == nil || paid[op.Else.Of(i)].Units > 0 {
			e.turnTo(op.PairAt(i).Policy)
			e.allowed++
		}
	}
}

// turnTo selects the policy for the following counts.
func (e *entry) turnTo(name []byte) {
	if e.of != nil && string(name) == string(e.name) {
		return
	}
	e.write()
	e.name, e.of = name, e.page.Of[string(name)]
}

// write adds the accumulated counts to the page.
func (e *entry) write() {
	if e.of != nil {
		e.of.add(e.allowed, e.limited)
	}
	e.allowed, e.limited = 0, 0
}

// At returns the page for a set of policies. Policies that the previous set had keep their counters.
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
