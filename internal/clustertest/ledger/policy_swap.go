package ledger

import "math/rand/v2"

// policySwapKeys are in three Raft groups of a cluster with four groups or more. The last key is in the first group.
var policySwapKeys = []string{"{foo}:0", "{foo}:1", "{bar}:0", "{cv}:0"}

const (
	policySwapTerms = 40
	policySwapMin   = 60   // of the tight limit
	policySwapWide  = 4000 // of the other limit
)

func policySwapPair(trail *Trail, key int) Pair { return Pair{trail.Name, policySwapKeys[key]} }

// drawPolicySwap checks a policy or changes it. Each version has a tight limit of its own size, in the position in
// which the previous version has a wide one. Half of a change would show two wide limits, or a size that is not in
// force. A third of the changes reset the usage. Alone is Traffic.OneSetter.
func drawPolicySwap(r *rand.Rand, trail *Trail, alone bool) Op {
	if r.IntN(8) > 0 || alone && !trail.set() {
		return Op{Verb: Check, Pairs: []Pair{policySwapPair(trail, r.IntN(len(policySwapKeys)))}, Units: r.Int64N(4)}
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
