package ledger

import (
	"fmt"
	"strings"
)

// shares are units by alternative.
type shares [maxAlternatives]int64

func (s shares) sum() (n int64) {
	for _, units := range s {
		n += units
	}
	return n
}

// alternatives returns how many alternatives an operation has.
func (e *entry) alternatives() int { return 1 + len(e.op.Else) }

// alternative returns the pairs of the i-th alternative: from first on, before end.
func (e *entry) alternative(i int) (first, end int) {
	end = len(e.op.Pairs)
	if i > 0 {
		first = e.op.Else[i-1]
	}
	if i < len(e.op.Else) {
		end = e.op.Else[i]
	}
	return first, end
}

// fund divides units among the alternatives, by the offers of all pairs. If the units do not fit, it returns the
// answers that are right. Else answers are those of the last alternative that pays.
func (e *entry) fund(offers []offer, units int64) (pay shares, fits bool, answers []Answer) {
	rest := units
	for i := range e.alternatives() {
		first, end := e.alternative(i)
		if fits, answers = decide(offers[first:end], rest); fits {
			pay[i] = rest
			return pay, true, answers
		}
		if e.op.Split {
			left := rest
			for _, o := range offers[first:end] {
				left = min(left, max(o.left, 0))
			}
			pay[i] = left
			rest -= left
		}
	}
	first, end := e.alternative(0)
	_, answers = decide(offers[first:end], pay[0]+rest)
	return shares{}, false, answers
}

// paid returns Answer.Paid for units of the alternatives, or "" without Else.
func (e *entry) paid(units shares) string {
	if len(e.op.Else) == 0 {
		return ""
	}
	words := []string{fmt.Sprint(units.sum())}
	for i := range e.alternatives() {
		first, _ := e.alternative(i)
		words = append(words, e.op.Pairs[first].Policy, fmt.Sprint(units[i]))
	}
	return strings.Join(words, " ")
}

func (h *hold) taken() (units shares) {
	for i, s := range h.sources {
		units[i] = s.taken
	}
	return units
}

// held returns Answer.Paid of an extension.
func (h *hold) held(e *entry) string {
	if len(e.op.Else) == 0 {
		return fmt.Sprint(h.taken().sum())
	}
	return e.paid(h.taken())
}

// last returns the last source that the hold took from.
func (h *hold) last() (last int) {
	for i, s := range h.sources {
		if s.taken > 0 {
			last = i
		}
	}
	return last
}

// unused divides units that were not used: the last source has all of its own first.
func (h *hold) unused(units int64) (back shares) {
	for i := len(back) - 1; i >= 0; i-- {
		back[i] = min(units, h.sources[i].taken-h.sources[i].used)
		units -= back[i]
	}
	return back
}

// owed divides units that count nowhere: each source pays up to what it took and did not use, the first one first, and
// the last one the rest.
func (h *hold) owed(units int64) (due shares) {
	for i, s := range h.sources {
		due[i] = min(units, s.taken-s.used)
		units -= due[i]
	}
	due[h.last()] += units
	return due
}

// extend takes more units for a hold. A repetition gets the first answer, with what the hold has now.
func (b *book) extend(e *entry) (told bool, next *book) {
	h, seq := b.holds[e.hold], int(e.op.Seq)
	switch {
	case h.phase != none && seq <= h.extended:
		first := h.extensions[seq-1]
		if first.units != e.op.Units {
			return e.told(Answer{Status: OtherTerms}), b
		}
		first.answer.Paid = h.held(e)
		return e.told(first.answer), b
	case h.phase == none:
		return e.told(Answer{Status: NoHold}), b
	case h.phase != open:
		return e.told(Answer{Status: HoldEnded}), b
	case seq != h.extended+1:
		return e.told(Answer{Status: OutOfOrder, Limit: int64(h.extended) + 1}), b
	}
	offers, ok := b.offers(e)
	if !ok {
		return e.told(Answer{Status: NoPolicy}), b
	}
	pay, fits, answers := e.fund(offers, e.op.Units)
	if fits {
		for i := range h.sources {
			h.sources[i].taken += pay[i]
		}
	}
	for i := range answers {
		answers[i].Policy, answers[i].Paid = "", h.held(e)
	}
	if !fits {
		return e.told(answers...), b
	}
	h.extensions[h.extended] = extension{e.op.Units, e.which(answers)}
	h.extended++
	return e.told(answers...), b.charged(e, pay).with(e.hold, h)
}

// report makes units the ones used so far of an open hold.
func (b *book) report(e *entry, h hold) (told bool, next *book) {
	last := h.last()
	var more shares
	more[last] = max(e.op.Units-h.taken().sum(), 0)
	h.sources[last].taken += more[last]
	unused := h.unused(h.taken().sum() - e.op.Units)
	for i := range h.sources {
		h.sources[i].used = h.sources[i].taken - unused[i]
	}
	h.actual = e.op.Units
	next = b.charged(e, more)
	return e.told(Answer{Left: next.leftOf(e, last)}), next.with(e.hold, h)
}

// leftOf returns the fewest units left of an alternative, -1 if a policy is deleted.
func (b *book) leftOf(e *entry, alternative int) int64 {
	offers, ok := b.offers(e)
	if !ok {
		return -1
	}
	first, end := e.alternative(alternative)
	_, answers := decide(offers[first:end], 0)
	return answers[0].Left
}

// which returns the answer that the client got, if it is one of the right ones.
func (e *entry) which(answers []Answer) Answer {
	for _, a := range answers {
		if a == e.op.Answer {
			return a
		}
	}
	return answers[0]
}
