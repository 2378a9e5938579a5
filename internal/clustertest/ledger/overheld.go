package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

// ErrOverHeld reports that more units were held and used at one instant than the limit has.
var ErrOverHeld = errors.New("more units are held than there are")

// edge is a number of units that are certainly taken, or no longer certainly taken, from an instant on.
type edge struct{ atNs, units int64 }

// OverHeld checks that clients never certainly took more than most units of a pair at once. It counts checks, holds
// until they may have expired or been given back, and commits of units that were held then. The cluster's clock may be
// faster than the clients' clock by drift.
func OverHeld(ops []Op, pair Pair, most int64, drift float64) error {
	var edges []edge
	for _, op := range ops {
		if op.Verb == Check && !op.Unknown && op.Answer.Allowed == 1 && slices.Contains(op.Pairs, pair) {
			edges = append(edges, edge{op.ReturnNs, op.Units})
		}
	}
	for _, made := range holdsOn(pair, ops) {
		edges = append(edges, lifeOf(made, ops, drift)...)
	}
	// Units that are released at an instant are released before units that are taken then.
	slices.SortFunc(edges, func(a, b edge) int {
		return cmp.Or(cmp.Compare(a.atNs, b.atNs), cmp.Compare(a.units, b.units))
	})
	var taken int64
	for _, e := range edges {
		if taken += e.units; taken > most {
			return fmt.Errorf("%w: %d of %d of %v at %v\n%s", ErrOverHeld, taken, most, pair,
				time.Duration(e.atNs), Show(ops))
		}
	}
	return nil
}

// holdsOn returns the holds that were certainly made on a pair. Each lasts from the first call to the first answer of
// its Reserve.
func holdsOn(pair Pair, ops []Op) map[string]Op {
	made, calledNs := map[string]Op{}, map[string]int64{}
	for _, op := range ops {
		if op.Verb != Reserve || !slices.Contains(op.Pairs, pair) {
			continue
		}
		if first, ok := calledNs[op.ID]; !ok || op.CallNs < first {
			calledNs[op.ID] = op.CallNs
		}
		if was, ok := made[op.ID]; !op.Unknown && op.Answer.Allowed == 1 && (!ok || op.ReturnNs < was.ReturnNs) {
			made[op.ID] = op
		}
	}
	for id, op := range made {
		op.CallNs = calledNs[id]
		made[id] = op
	}
	return made
}

// lifeOf returns the edges of one hold.
func lifeOf(made Op, ops []Op, drift float64) []edge {
	endNs := made.CallNs + int64(float64(made.TTLNs)/(1+drift))
	tillNs, kept, cancelNs := endNs, int64(0), endNs
	for _, op := range ops {
		if op.ID != made.ID || op.Verb != Commit && op.Verb != Cancel {
			continue
		}
		if tillNs = min(tillNs, op.CallNs); op.Verb == Cancel {
			cancelNs = min(cancelNs, op.CallNs)
		}
	}
	for _, op := range ops {
		if op.ID == made.ID && op.Verb == Commit && !op.Unknown && op.Answer.Status == OK && op.ReturnNs < cancelNs {
			kept = min(op.Units, made.Units)
		}
	}
	if tillNs <= made.ReturnNs {
		return []edge{{made.ReturnNs, kept}}
	}
	return []edge{{made.ReturnNs, made.Units}, {tillNs, kept - made.Units}}
}
