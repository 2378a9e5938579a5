package ledger

import (
	"fmt"
	"slices"
)

// index assigns an index in the book to every name of a history.
type index struct {
	policies, pairs, holds, known map[string]int
	owners                        []int         // the policy of each pair
	terms                         [][]int64     // maxima, by entry.terms; 0 stands for no policy
	byHold                        map[string]Op // its Reserve
}

// entry is an operation with its indexes.
type entry struct {
	op       Op
	index    *index
	policies []int // of the pairs
	pairs    []int
	hold     int
	terms    int
}

// told reports whether the client received one of these answers, or no answer of this
// group.
func (e *entry) told(answers ...Answer) bool {
	return e.op.Unknown || e.op.elsewhere || slices.Contains(answers, e.op.Answer)
}

// entries prepares a history. Commit, Cancel and Extend get the pairs of their hold.
func entries(ops []Op) (list []*entry, first *book) {
	x := &index{
		policies: map[string]int{}, pairs: map[string]int{}, holds: map[string]int{},
		known: map[string]int{}, terms: make([][]int64, 1), byHold: map[string]Op{},
	}
	for _, op := range ops {
		if op.Verb == Reserve {
			x.byHold[op.ID] = op
		}
	}
	for _, op := range ops {
		list = append(list, x.entry(op))
	}
	return list, &book{
		policies: make([]policy, len(x.policies)), used: make([]int64, len(x.pairs)), holds: make([]hold, len(x.holds)),
	}
}

func (x *index) entry(op Op) *entry {
	if op.Verb == Commit || op.Verb == Cancel || op.Verb == Extend {
		made := x.byHold[op.ID]
		op.Pairs, op.Else, op.Split = made.Pairs, made.Else, made.Split
	}
	e := &entry{op: op, index: x, hold: place(x.holds, op.ID), terms: x.termsOf(op.Maxima)}
	for _, p := range op.Pairs {
		owner := place(x.policies, p.Policy)
		e.policies = append(e.policies, owner)
		if op.Verb == Set {
			continue
		}
		at := place(x.pairs, p.String())
		e.pairs = append(e.pairs, at)
		if at == len(x.owners) {
			x.owners = append(x.owners, owner)
		}
	}
	return e
}

func (x *index) termsOf(maxima []int64) int {
	if len(maxima) == 0 {
		return 0
	}
	at := 1 + place(x.known, fmt.Sprint(maxima))
	if at == len(x.terms) {
		x.terms = append(x.terms, maxima)
	}
	return at
}

// place returns the index of a name, which is the next free one for a new name.
func place(of map[string]int, name string) int {
	at, ok := of[name]
	if !ok {
		at = len(of)
		of[name] = at
	}
	return at
}
