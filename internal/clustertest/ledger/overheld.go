package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// ErrOverHeld reports that more units were held and used at one instant than the limit has.
var ErrOverHeld = errors.New("more units are held than there are")

// Span is a time during which units were certainly taken: a client held them, or used them for good.
type Span struct {
	Of             string
	FromNs, TillNs int64
	Units          int64
}

// OverHeld checks that at no instant more than most units are certainly taken.
func OverHeld(most int64, spans []Span) error {
	type edge struct{ atNs, units int64 }
	var edges []edge
	for _, s := range spans {
		if s.TillNs > s.FromNs {
			edges = append(edges, edge{s.FromNs, s.Units}, edge{s.TillNs, -s.Units})
		}
	}
	// Units that are released at an instant are released before units that are taken then.
	slices.SortFunc(edges, func(a, b edge) int {
		return cmp.Or(cmp.Compare(a.atNs, b.atNs), cmp.Compare(a.units, b.units))
	})
	var taken int64
	for _, e := range edges {
		if taken += e.units; taken > most {
			return fmt.Errorf("%w: %d of %d at %v:\n%s", ErrOverHeld, taken, most, time.Duration(e.atNs),
				showSpans(e.atNs, spans))
		}
	}
	return nil
}

func showSpans(atNs int64, spans []Span) string {
	var b strings.Builder
	for _, s := range spans {
		if s.FromNs <= atNs && atNs < s.TillNs {
			fmt.Fprintf(&b, "  %-12s %d taken %v .. %v\n", s.Of, s.Units, time.Duration(s.FromNs),
				time.Duration(s.TillNs))
		}
	}
	return b.String()
}

// ever is the end of a use for good.
const ever = math.MaxInt64

// SpansOf returns the times during which units of a pair were certainly taken: by checks, by holds until they may have
// expired or been given back, and by commits of units that were held then. The cluster's clock may be faster than the
// clients' clock by drift.
func SpansOf(pair Pair, ops []Op, drift float64) (spans []Span) {
	for _, op := range ops {
		if op.Verb == Check && !op.Unknown && op.Answer.Allowed == 1 && slices.Contains(op.Pairs, pair) {
			spans = append(spans, Span{"check", op.ReturnNs, ever, op.Units})
		}
	}
	for _, made := range holdsOn(pair, ops) {
		spans = append(spans, lifeOf(made, ops, drift)...)
	}
	return spans
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

// lifeOf returns the times of one hold: while it was active, and since then for its used units.
func lifeOf(made Op, ops []Op, drift float64) []Span {
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
	tillNs = max(tillNs, made.ReturnNs)
	return []Span{{made.ID, made.ReturnNs, tillNs, made.Units}, {made.ID, tillNs, ever, kept}}
}
