package store

import (
	"math/bits"

	"github.com/weir-project/weir/engine/internal/rule"
)

// A hold with alternatives keeps what it took under each: an alternative is a source of its units. What was used counts
// against the first sources first, and what is given back goes to the last source first. The last source that the hold
// took from also pays what was used beyond the hold. The record decides this, and not what the limiters have left: so
// what others give back meanwhile changes no share.

// MaxSources bounds the alternatives of a request: an allowance, two further budgets, and a slower limit.
const MaxSources = 4

// Source is what a hold took under one of its alternatives, in units.
type Source struct {
	Reserved int64 // by the OpReserve
	Taken    int64 // so far, with extensions and what was used beyond the hold
	Used     int64 // of Taken, as the last OpCommit reported
}

// BySource has units of each source of a hold. A hold without alternatives has one source.
type BySource [MaxSources]int64

// Alternatives says which pairs of a request begin an alternative: bit i is set if pair i begins one. Bit 0 is Split,
// because pair 0 always begins the first.
type Alternatives uint16

// Len returns the number of alternatives.
func (a Alternatives) Len() int { return 1 + bits.OnesCount16(uint16(a&^Split)) }

// Split in Alternatives lets several of them pay together.
const Split Alternatives = 1

// Split reports whether several alternatives may pay together.
func (a Alternatives) Split() bool { return a&Split != 0 }

// Of returns the number of the alternative that a pair belongs to.
func (a Alternatives) Of(pair int) int { return bits.OnesCount16(uint16(a&^Split) & (1<<(pair+1) - 1)) }

// Pairs returns which of n pairs belong to an alternative: those from first up to end.
func (a Alternatives) Pairs(alternative, n int) (first, end int) {
	for first < n && a.Of(first) < alternative {
		first++
	}
	for end = first; end < n && a.Of(end) == alternative; {
		end++
	}
	return first, end
}

// Valid reports whether n pairs may be divided so.
func (a Alternatives) Valid(n int) bool { return a != Split && a>>n == 0 && a.Len() <= MaxSources }

// Unused returns how the last units of a hold that were not reported as used are divided among its sources: the last
// source first.
func (x *Hold) Unused(units int64) (by BySource) {
	if len(x.Sources) == 0 {
		by[0] = units
		return by
	}
	for i := len(x.Sources) - 1; i >= 0; i-- {
		by[i] = min(units, x.Sources[i].Taken-x.Sources[i].Used)
		units -= by[i]
	}
	return by
}

// Owed returns how a cost that is not counted yet is divided among the sources. If the units of the hold still count,
// only what is beyond them is owed. Otherwise each source owes what it paid of the cost.
func (x *Hold) Owed(cost int64, counted bool) (by BySource) {
	if counted {
		by[x.LastSource()] = max(cost-x.Total(), 0)
		return by
	}
	if by = x.Paid(cost); len(x.Sources) == 0 {
		by[0] -= x.Actual
	}
	for i, s := range x.Sources {
		by[i] -= s.Used
	}
	return by
}

// Paid returns how a true cost is divided among the sources.
func (x *Hold) Paid(cost int64) (by BySource) {
	if len(x.Sources) == 0 {
		by[0] = cost
		return by
	}
	beyond := max(cost-x.Total(), 0)
	unused := x.Unused(x.Total() - (cost - beyond))
	for i, s := range x.Sources {
		by[i] = s.Taken - unused[i]
	}
	by[x.LastSource()] += beyond
	return by
}

// Told returns which part of the cost the events of a hold have told, by source: what was used when it was cancelled or
// expired.
func (x *Hold) Told() (by BySource) {
	switch x.Phase {
	case HoldCancelled:
		return x.Paid(x.Actual)
	case HoldExpired:
		return x.Paid(x.UsedAtEnd())
	}
	return by
}

// LastSource returns the number of the last source that the hold took from.
func (x *Hold) LastSource() (last int) {
	for i, s := range x.Sources {
		if s.Taken > 0 {
			last = i
		}
	}
	return last
}

// Report records that the hold has used a cost so far, and units beyond what it had taken, which its last source paid.
func (x *Hold) Report(cost, beyond int64) {
	if x.Actual = cost; len(x.Sources) == 0 {
		return
	}
	last := &x.Sources[x.LastSource()]
	last.Taken += beyond
	unused := x.Unused(x.Total() - cost)
	for i := range x.Sources {
		s := &x.Sources[i]
		s.Used = s.Taken - unused[i]
	}
}

// SourcePairs returns the pairs of a source.
func (x *Hold) SourcePairs(source int) []HoldPair {
	first, end := x.Else.Pairs(source, len(x.Pairs))
	return x.Pairs[first:end]
}

// The last part of a hold's record is else(2) source..., with source = reserved(8) taken(8) used(8).

const (
	sourceLen = 3 * 8
	elseLen   = 2
)

// SourcesLen returns how many bytes of MaxHoldBytes the sources of a hold need.
func SourcesLen(a Alternatives) int {
	if a == 0 {
		return 0
	}
	return sourceLen * a.Len()
}

func (x *Hold) writeSources(b []byte) {
	le.PutUint16(b, uint16(x.Else))
	for i, s := range x.Sources {
		for k, n := range [...]int64{s.Reserved, s.Taken, s.Used} {
			le.PutUint64(b[elseLen+sourceLen*i+8*k:], uint64(n))
		}
	}
}

func (x *Hold) readSources(b []byte) {
	x.Else = Alternatives(le.Uint16(b))
	x.Sources = make([]Source, x.Else.Len())
	for i := range x.Sources {
		s := &x.Sources[i]
		for k, n := range [...]*int64{&s.Reserved, &s.Taken, &s.Used} {
			*n = int64(le.Uint64(b[elseLen+sourceLen*i+8*k:]))
		}
	}
}

// validSources reports whether b are the sources of a hold of n pairs that took a number of units.
func validSources(b []byte, n int, total int64) bool {
	if len(b) < elseLen {
		return false
	}
	a := Alternatives(le.Uint16(b))
	if a == 0 || !a.Valid(n) || len(b) != elseLen+SourcesLen(a) {
		return false
	}
	var x Hold
	x.readSources(b)
	for _, s := range x.Sources {
		if s.Reserved < 0 || s.Reserved > s.Taken || s.Used < 0 || s.Used > s.Taken || s.Taken > rule.MaxUnits {
			return false
		}
		total -= s.Taken
	}
	return total == 0
}

// The token of a check that several alternatives paid has units(8) of each at its end, and the bit dividedAnswer in the
// last number of its answer.

const (
	dividedAnswer   = 1 << 62
	DividedTokenLen = TokenLen + 8*MaxSources
)

// tokenLen returns the length of a token's state.
func tokenLen(state []byte) int {
	if readAnswer(state)[4]&dividedAnswer != 0 {
		return DividedTokenLen
	}
	return TokenLen
}

// validToken reports whether a stored state is that of a token.
func validToken(b []byte) bool {
	return len(b) == answerLen || len(b) >= TokenLen && len(b) == tokenLen(b)
}

// DivideToken adds to a token of DividedTokenLen what each alternative paid.
func DivideToken(state []byte, by BySource) {
	le.PutUint64(state[32:], le.Uint64(state[32:])|dividedAnswer)
	for i, n := range by {
		le.PutUint64(state[TokenLen+8*i:], uint64(n))
	}
}

// Divided returns what DivideToken added.
func Divided(state []byte) (by BySource, divided bool) {
	if divided = tokenLen(state) == DividedTokenLen; divided {
		for i := range by {
			by[i] = int64(le.Uint64(state[TokenLen+8*i:]))
		}
	}
	return by, divided
}
