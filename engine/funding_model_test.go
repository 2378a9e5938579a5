package engine_test

import (
	"fmt"
	"strings"

	"github.com/weir-project/weir/engine"
)

// heldSource is what a hold took under one alternative.
type heldSource struct {
	pairs                 []engine.Pair
	reserved, taken, used int64
	told                  int64 // of its part of the cost, by events
}

// unused returns the units that were not reported as used.
func (s *heldSource) unused() int64 { return s.taken - s.used }

// alternativesOf returns the pairs of each alternative of a request.
func alternativesOf(op *engine.Op) (list []*heldSource) {
	for i, p := range pairsOf(op) {
		if i == 0 || op.Else>>i&1 != 0 {
			list = append(list, &heldSource{})
		}
		last := list[len(list)-1]
		last.pairs = append(last.pairs, p)
	}
	return list
}

// fund decides what each alternative pays of n units. The answer describes the alternative number last.
func (m *holdModel) fund(nowNs int64, op *engine.Op, n int64, partial bool) (pay []int64, last int, admitted bool) {
	all := alternativesOf(op)
	pay, rest := make([]int64, len(all)), n
	for i, a := range all {
		limiters := binding(m.groupsOf(nowNs, a.pairs))
		left := least(limiters)
		if left >= rest && !(rest == 0 && inDebt(limiters)) {
			pay[i] = rest
			return pay, i, true
		}
		if op.Else.Split() && left > 0 {
			pay[i], last, rest = left, i, rest-left
		}
	}
	if partial && op.Else.Split() {
		return pay, last, rest < n
	}
	for i, a := range all {
		if left := least(binding(m.groupsOf(nowNs, a.pairs))); partial && left > 0 {
			pay[i] = min(left, n)
			return pay, i, true
		}
	}
	return nil, 0, false
}

// inDebt reports whether a limiter has less than nothing left.
func inDebt(limiters []*heldLimiter) bool {
	for _, l := range limiters {
		if l.left().Sign() < 0 {
			return true
		}
	}
	return false
}

// paidText is the Value of an answer.
func paidText(op *engine.Op, units func(i int) int64) string {
	var words []string
	sum := int64(0)
	for i, a := range alternativesOf(op) {
		sum += units(i)
		words = append(words, fmt.Sprint(string(a.pairs[0].Policy), " ", units(i)))
	}
	if op.Else == 0 {
		return ""
	}
	return fmt.Sprint(sum, " ", strings.Join(words, " "))
}

// lastSource returns the last source that a hold took from.
func (x *heldHold) lastSource() (last *heldSource) {
	last = x.sources[0]
	for _, s := range x.sources {
		if s.taken > 0 {
			last = s
		}
	}
	return last
}

// giveBack divides n units that come back: the last source gets all of its unused units first.
func (x *heldHold) giveBack(n int64) (back []int64) {
	back = make([]int64, len(x.sources))
	for i := range x.sources {
		at := len(x.sources) - 1 - i
		back[at] = min(n, x.sources[at].unused())
		n -= back[at]
	}
	return back
}

// owe divides n units that count nowhere yet: each source pays up to what it had taken, the first one first, and the
// last source the rest.
func (x *heldHold) owe(n int64) (due map[*heldSource]int64) {
	due = map[*heldSource]int64{}
	for _, s := range x.sources {
		due[s] = min(n, s.unused())
		n -= due[s]
	}
	due[x.lastSource()] += n
	return due
}

// held is the Value of the answer to an extension.
func (x *heldHold) held() string {
	if x.op.Else == 0 {
		return fmt.Sprint(x.total)
	}
	return paidText(&x.op, func(i int) int64 { return x.sources[i].taken })
}
