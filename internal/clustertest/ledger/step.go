package ledger

import "slices"

// step applies one operation, and reports whether its client received a correct answer.
func (b *book) step(e *entry) (told bool, next *book) {
	switch e.op.Verb {
	case Check:
		return b.check(e)
	case Reserve:
		return b.reserve(e)
	case Commit:
		return b.commit(e)
	case Cancel:
		return b.cancel(e)
	case Set:
		return b.set(e)
	case Extend:
		return b.extend(e)
	}
	used, answer := Count(b.used[e.pairs[0]], &e.op)
	return e.told(answer), b.charged(e, shares{used - b.used[e.pairs[0]]})
}

// Count returns the effect of an operation on a counter of which some units are in use, and its answer.
func Count(used int64, op *Op) (now int64, a Answer) {
	switch op.Verb {
	case Take:
		granted := op.Units
		if op.Partial {
			granted = min(granted, op.Max-used)
		}
		if used+granted > op.Max {
			granted = 0
		}
		return used + granted, Answer{Allowed: granted, Left: op.Max - used - granted}
	case Refund:
		if used == 0 {
			return 0, Answer{Left: -1} // an idle limiter does not exist, so no unit can be refunded
		}
		used = max(0, used-op.Units)
		return used, Answer{Left: op.Max - used}
	case Inspect:
		return used, Answer{Left: op.Max - used}
	case Exists:
		return used, Answer{Left: min(used, 1)}
	default: // Reset
		return 0, Answer{Left: min(used, 1)}
	}
}

func (b *book) check(e *entry) (told bool, next *book) {
	offers, ok := b.offers(e)
	if !ok {
		return e.told(Answer{Status: NoPolicy}), b
	}
	pay, fits, answers := e.fund(offers, e.op.Units)
	if !fits {
		return e.told(answers...), b
	}
	for i := range answers {
		answers[i].Paid = e.paid(pay)
	}
	if e.op.Units == 0 {
		return e.told(answers...), b
	}
	return e.told(answers...), b.charged(e, pay)
}

// reserve stores the units that a check takes. A repetition gets the same answer.
func (b *book) reserve(e *entry) (told bool, next *book) {
	if h := b.holds[e.hold]; h.phase != none {
		return e.told(h.made), b
	}
	offers, ok := b.offers(e)
	if !ok {
		return e.told(Answer{Status: NoPolicy}), b
	}
	pay, fits, answers := e.fund(offers, e.op.Units)
	for i := range answers {
		if answers[i].Policy = ""; fits {
			answers[i].Paid = e.paid(pay)
		}
	}
	if !fits {
		return e.told(answers...), b
	}
	h := hold{phase: open, made: e.which(answers)}
	for i := range h.sources {
		h.sources[i].taken = pay[i]
	}
	return e.told(h.made), b.charged(e, pay).with(e.hold, h)
}

// commit gives back the unused units of a hold, and takes the units used beyond it, even beyond the limit. For a
// cancelled hold it takes all used units that no commit with Keep has reported. With Keep the hold stays open.
func (b *book) commit(e *entry) (told bool, next *book) {
	h := b.holds[e.hold]
	switch {
	case h.phase == none:
		return e.told(Answer{Status: NoHold}), b
	case e.op.Keep && h.phase == settled:
		return e.told(Answer{Status: HoldEnded}), b
	case h.phase == settled && h.actual != e.op.Units, e.op.Units < h.actual:
		return e.told(Answer{Status: OtherTerms}), b
	case h.phase == settled:
		return e.told(Answer{Left: h.left}), b
	case e.op.Keep && h.phase != open:
		return e.told(Answer{Status: HoldEnded}), b
	case e.op.Keep:
		return b.report(e, h)
	}
	var due shares
	switch total := h.taken().sum(); {
	case h.phase == cancelled:
		due = h.owed(e.op.Units - h.actual)
	case e.op.Units < total:
		for i, back := range h.unused(total - e.op.Units) {
			due[i] = -back
		}
	default:
		due[h.last()] = e.op.Units - total
	}
	next = b.charged(e, due)
	h.phase, h.actual, h.left = settled, e.op.Units, next.leftOf(e, h.last())
	return e.told(Answer{Left: h.left}), next.with(e.hold, h)
}

func (b *book) cancel(e *entry) (told bool, next *book) {
	h := b.holds[e.hold]
	switch h.phase {
	case cancelled:
		return e.told(Answer{Allowed: 1}), b
	case open:
		due := h.unused(h.taken().sum() - h.actual)
		for i := range due {
			due[i] = -due[i]
		}
		h.phase = cancelled
		return e.told(Answer{Allowed: 1}), b.charged(e, due).with(e.hold, h)
	}
	return e.told(Answer{}), b
}

// set changes a policy. With Reset it forgets the usage of all keys of the policy. A deletion forgets it too.
func (b *book) set(e *entry) (told bool, next *book) {
	was := b.policies[e.policies[0]]
	now := policy{version: was.version, terms: e.terms}
	answer := Answer{Allowed: min(was.version, 1)}
	if e.terms == 0 {
		now.version = 0
	} else {
		if was.terms != e.terms {
			now.version++
		}
		answer = Answer{Left: now.version}
	}
	copied := *b
	copied.policies = slices.Clone(b.policies)
	copied.policies[e.policies[0]] = now
	if e.op.Reset || e.terms == 0 {
		copied.used = slices.Clone(b.used)
		for place, owner := range e.index.owners {
			if owner == e.policies[0] {
				copied.used[place] = 0
			}
		}
	}
	return e.told(answer), &copied
}
