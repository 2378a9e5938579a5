package router

import (
	"sync"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/engine/hashslot"
	"github.com/weir-project/weir/limiter"
)

// Decide decides a pipeline; see limiter.Limiter. It returns an error only if one group owns all keys and could not
// decide. Otherwise the operations of a group that could not decide have a status that tells why.
func (r *Router) Decide(ops []engine.Op, out []engine.Decision) error {
	if g := r.only(); g != nil {
		return g.Decide(ops, out)
	}
	for from := 0; from < len(ops); {
		end := from
		for end < len(ops) && !everywhere(&ops[end]) {
			if ops[end].Code == engine.OpBlock {
				ops[end].High = true // the first group alone changes blocks everywhere
			}
			end++
		}
		if end > from {
			if err := r.decideRun(ops[from:end], out[from:end]); err != nil {
				if from == 0 && end == len(ops) {
					return err
				}
				fail(out[from:end], err)
			}
		}
		from = end
		for end < len(ops) && everywhere(&ops[end]) && shared(&ops[end]) == shared(&ops[from]) {
			end++
		}
		if from < end {
			r.decideEverywhere(ops[from:end], out[from:end])
		}
		from = end
	}
	return nil
}

// DecideAtomic decides a transaction. With several groups, all of its operations must be on one slot, or all must
// change shared items. It then lifts no block everywhere: it refuses to unblock a key that has one.
func (r *Router) DecideAtomic(ops []engine.Op, out []engine.Decision) error {
	if g := r.only(); g != nil {
		return g.DecideAtomic(ops, out)
	}
	if len(ops) == 0 {
		return nil
	}
	sharing := 0
	for i := range ops {
		if shared(&ops[i]) {
			sharing++
		}
	}
	switch sharing {
	case len(ops):
		return r.changeBound(ops, out, true)
	case 0:
	default:
		return limiter.ErrSharedInTx
	}
	slot := engine.SlotOf(ops[0].Key)
	for i := range ops {
		if !onSlot(&ops[i], slot) {
			return limiter.ErrCrossSlot
		}
		switch ops[i].Code {
		case engine.OpUnblock:
			ops[i].High, ops[i].Partial = true, true
		case engine.OpBlock:
			ops[i].High = true
		}
	}
	return r.reach(r.route(slot), func(g reachable) error { return g.DecideAtomic(ops, out) })
}

// onSlot reports whether all keys of an operation, and the id of its hold, are in a slot.
func onSlot(op *engine.Op, slot uint16) bool {
	return engine.SlotOf(op.Key) == slot && op.Within(hashslot.Range{First: slot, Last: slot})
}

// nowhere marks an operation in a plan that no group may decide.
const nowhere = -1

// plan divides a run of operations among groups. A router reuses plans.
type plan struct {
	group  []int // of each operation, or nowhere
	counts []int // operations by group
	ends   []int // of the groups' operations in ops, by group
	ops    []engine.Op
	out    []engine.Decision
	waits  []partWait
}

// divide fills group and counts, and returns the only group of all operations, or nowhere.
func (p *plan) divide(r *Router, ops []engine.Op) (only int) {
	clear(p.counts)
	p.group = p.group[:0]
	for i := range ops {
		slot := engine.SlotOf(ops[i].Key)
		g := r.route(slot)
		if (len(ops[i].Also) > 0 || ops[i].Code == engine.OpReserve) && !onSlot(&ops[i], slot) {
			g = nowhere
		} else {
			p.counts[g]++
		}
		p.group = append(p.group, g)
	}
	if g := p.group[0]; g != nowhere && p.counts[g] == len(ops) {
		return g
	}
	return nowhere
}

// gather copies the operations, sorted by group. Operations of one group keep their order.
func (p *plan) gather(ops []engine.Op) {
	if p.ends == nil {
		p.ends = make([]int, len(p.counts))
	}
	if cap(p.ops) < len(ops) {
		p.ops, p.out = make([]engine.Op, len(ops)), make([]engine.Decision, len(ops))
	}
	p.ops, p.out = p.ops[:len(ops)], p.out[:len(ops)]
	at := 0
	for g, n := range p.counts {
		p.ends[g] = at
		at += n
	}
	for i, g := range p.group {
		if g != nowhere {
			p.ops[p.ends[g]] = ops[i]
			p.ends[g]++
		}
	}
}

// scatter copies the answers back to the order of the operations.
func (p *plan) scatter(out []engine.Decision) {
	for g, n := range p.counts {
		p.ends[g] -= n
	}
	for i, g := range p.group {
		if g == nowhere {
			out[i] = engine.Decision{Status: limiter.ErrCrossSlot.Status()}
			continue
		}
		out[i] = p.out[p.ends[g]]
		p.ends[g]++
	}
}

// release drops what the operations refer to, so that a reused plan keeps no memory of its last caller.
func (p *plan) release() {
	clear(p.ops)
	clear(p.out)
	clear(p.waits)
}

// decideRun decides operations that have a slot each. It returns the error of the group if one group decides them all.
func (r *Router) decideRun(ops []engine.Op, out []engine.Decision) error {
	p := r.plans.Get().(*plan)
	defer r.plans.Put(p)
	if only := p.divide(r, ops); only != nowhere {
		return r.reach(only, func(g reachable) error { return g.Decide(ops, out) })
	}
	p.gather(ops)
	defer p.release()
	r.decideParts(p)
	p.scatter(out)
	return nil
}

// starter is a group that can decide without a goroutine; see raftstore.Node.Start.
type starter interface {
	Start(ops []engine.Op, out []engine.Decision) (wait func() error, started bool)
}

// decideParts decides the operations of a plan in all groups at the same time.
func (r *Router) decideParts(p *plan) {
	var others sync.WaitGroup
	p.waits = p.waits[:0]
	for i, n := range p.counts {
		if n == 0 {
			continue
		}
		ops, out := p.part(i)
		if s, ok := r.Group(i).(starter); ok {
			if wait, started := s.Start(ops, out); started {
				p.waits = append(p.waits, partWait{out, wait})
				continue
			}
		}
		others.Go(func() { failIf(r.reach(i, func(g reachable) error { return g.Decide(ops, out) }), out) })
	}
	for _, w := range p.waits {
		failIf(w.wait(), w.out)
	}
	others.Wait()
}

// partWait waits for the answers of one group.
type partWait struct {
	out  []engine.Decision
	wait func() error
}

// part returns the operations and the answers of one group.
func (p *plan) part(g int) ([]engine.Op, []engine.Decision) {
	from, end := p.ends[g]-p.counts[g], p.ends[g]
	return p.ops[from:end], p.out[from:end]
}

// failIf answers the operations of a group that returned an error.
func failIf(err error, out []engine.Decision) {
	if err != nil {
		fail(out, err)
	}
}

// fail answers operations whose group could not decide.
func fail(out []engine.Decision, err error) {
	for i := range out {
		out[i] = engine.Decision{Status: outcomeOf(err).Status()}
	}
}

// outcomeOf returns the outcome of a group's error.
func outcomeOf(err error) limiter.Outcome {
	o := limiter.OutcomeOf(err)
	if o == limiter.ErrNotLeader { // the caller cannot know which node should have led
		return limiter.ErrTryAgain
	}
	return o
}
