package ledger

import (
	"fmt"
	"math/rand/v2"
)

const (
	turnKeys  = 2
	turnTerms = 40
	turnLeast = 60   // of the tight limit
	turnWide  = 4000 // of the other limit
)

func turnPair(trail *Trail, key int) Pair { return Pair{trail.Name, fmt.Sprint("k", key)} }

// drawTurn checks a policy or changes it. Each version has a tight limit of its own size, in the position in which the
// previous version has a wide one. Half of a change would show two wide limits, or a size that is not in force.
func drawTurn(r *rand.Rand, trail *Trail) Op {
	if r.IntN(8) > 0 {
		return Op{Verb: Check, Pairs: []Pair{turnPair(trail, r.IntN(turnKeys))}, Units: r.Int64N(4)}
	}
	op := Op{Verb: Set, Pairs: []Pair{{Policy: trail.Name}}}
	if r.IntN(8) == 0 {
		return op // delete it
	}
	n := r.Int64N(turnTerms)
	op.Maxima, op.Reset = []int64{turnLeast + 3*n, turnWide}, r.IntN(3) == 0
	if n%2 == 1 {
		op.Maxima = []int64{turnWide, turnLeast + 3*n}
	}
	return op
}
