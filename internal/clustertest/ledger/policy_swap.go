package ledger

import (
	"fmt"
	"math/rand/v2"
)

const (
	policySwapKeys  = 2
	policySwapTerms = 40
	policySwapMin   = 60   // of the tight limit
	policySwapWide  = 4000 // of the other limit
)

func policySwapPair(trail *Trail, key int) Pair { return Pair{trail.Name, fmt.Sprint("k", key)} }

// drawPolicySwap checks a policy or changes it. Each version has a tight limit of its own size, in the position in
// which the previous version has a wide one. Half of a change would show two wide limits, or a size that is not in
// force.
func drawPolicySwap(r *rand.Rand, trail *Trail) Op {
	if r.IntN(8) > 0 {
		return Op{Verb: Check, Pairs: []Pair{policySwapPair(trail, r.IntN(policySwapKeys))}, Units: r.Int64N(4)}
	}
	op := Op{Verb: Set, Pairs: []Pair{{Policy: trail.Name}}}
	if r.IntN(8) == 0 {
		return op // delete it
	}
	n := r.Int64N(policySwapTerms)
	op.Maxima, op.Reset = []int64{policySwapMin + 3*n, policySwapWide}, r.IntN(3) == 0
	if n%2 == 1 {
		op.Maxima = []int64{policySwapWide, policySwapMin + 3*n}
	}
	return op
}
