package ledger

import (
	"errors"
	"fmt"
	"slices"
)

// ErrUnexplained reports that the final use equals neither the acknowledged operations nor these with any of the
// unknown ones.
var ErrUnexplained = errors.New("the units in use are not explained")

// MaxUnknown bounds the charges with an unknown outcome in one history, because each doubles the sums to check.
const MaxUnknown = 16

// charge is the use of one operation: the same number of units of each of its pairs.
type charge struct {
	pairs []Pair
	units int64
}

// Explained compares the remaining units of pairs after every hold has ended with the history. left contains the
// answers to a Check of 0 units. Every acknowledged check and commit counts once in all of its pairs, an unknown one in
// all or in none, and a hold nowhere. The history begins with the policies, and they do not change until the end.
func Explained(ops []Op, left map[Pair]Answer) error {
	if err := sameTerms(ops, left); err != nil {
		return err
	}
	certain, perhaps := charges(ops)
	if n := unknowns(perhaps); n > MaxUnknown {
		return fmt.Errorf("%w: %d operations with an unknown end", ErrUndecided, n)
	}
	used := map[Pair]int64{}
	for _, c := range certain {
		c.add(used, 1)
	}
	if explains(used, perhaps, left) {
		return nil
	}
	return fmt.Errorf("%w: left %v, used for certain %v, perhaps %v\n%s", ErrUnexplained, left,
		used, perhaps, Show(ops))
}

// sameTerms finds answers that report a missing policy or another limit.
func sameTerms(ops []Op, left map[Pair]Answer) error {
	limits := map[string]int64{}
	for _, op := range ops {
		switch {
		case op.Verb == Set:
			limits[op.Pairs[0].Policy] = slices.Min(op.Maxima)
		case !op.Unknown && op.Answer.Status == NoPolicy:
			return fmt.Errorf("%w: a policy is gone: %v", ErrUnexplained, op)
		}
	}
	for pair, a := range left {
		if a.Status != OK || a.Limit != limits[pair.Policy] {
			return fmt.Errorf("%w: %v has a limit of %d, and the answer is %+v", ErrUnexplained, pair,
				limits[pair.Policy], a)
		}
	}
	return nil
}

// explains tries all combinations of the uncertain charges. Each element of perhaps contributes one of its
// alternatives, or none.
func explains(used map[Pair]int64, perhaps [][]charge, left map[Pair]Answer) bool {
	if len(perhaps) == 0 {
		return fits(used, left)
	}
	if explains(used, perhaps[1:], left) {
		return true
	}
	for _, c := range perhaps[0] {
		c.add(used, 1)
		explained := explains(used, perhaps[1:], left)
		if c.add(used, -1); explained {
			return true
		}
	}
	return false
}

func unknowns(perhaps [][]charge) (n int) {
	for _, alternatives := range perhaps {
		n += len(alternatives)
	}
	return n
}

// fits compares sums with the remaining units, which are zero after commits beyond the limit.
func fits(used map[Pair]int64, left map[Pair]Answer) bool {
	for pair, a := range left {
		if a.Left != max(a.Limit-used[pair], 0) {
			return false
		}
	}
	return true
}

func (c charge) add(used map[Pair]int64, times int64) {
	for _, p := range c.pairs {
		used[p] += times * c.units
	}
}

// charges returns the units that stay used. A hold is charged once, by the commit that completed it. Its unknown
// commits are alternatives.
func charges(ops []Op) (certain []charge, perhaps [][]charge) {
	made, settled := map[string][]Pair{}, map[string]bool{}
	for _, op := range ops {
		if op.Verb == Reserve {
			made[op.ID] = op.Pairs
		}
	}
	for _, op := range ops {
		if op.Verb == Commit && !op.Unknown && op.Answer.Status == OK && !settled[op.ID] {
			settled[op.ID] = true
			certain = append(certain, charge{made[op.ID], op.Units})
		}
	}
	commits := map[string]int{} // index in perhaps, by hold
	for _, op := range ops {
		switch {
		case op.Verb == Check && op.Unknown:
			perhaps = append(perhaps, []charge{{op.Pairs, op.Units}})
		case op.Verb == Check && op.Answer.Allowed == 1:
			certain = append(certain, charge{op.Pairs, op.Units})
		case op.Verb == Commit && op.Unknown && !settled[op.ID]:
			at, ok := commits[op.ID]
			if !ok {
				at, perhaps = len(perhaps), append(perhaps, nil)
				commits[op.ID] = at
			}
			perhaps[at] = append(perhaps[at], charge{made[op.ID], op.Units})
		}
	}
	return certain, perhaps
}
