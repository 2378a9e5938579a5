package engine_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/race"
)

// extremes are numbers at the bounds of doubles, of their whole numbers and of integers.
var extremes = []float64{0, 1, -1, 0.5, 5, 1e9, 1 << 31, 1 << 52, 1 << 53, -1 << 53, 1 << 62, 1 << 63, -1 << 63,
	1e300, -1e300, math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64}

// TestScriptsWithExtremeArguments checks that scripts decide every number that an entry of a log can have, and alike on
// all replicas. Servers send only numbers that their libraries send.
func TestScriptsWithExtremeArguments(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 60))
		replicas := replicasOf(t, seed)
		at := engine.Stamp{NowNs: 1_800_000_000e9}
		for range 200 {
			at.NowNs += rng.Int64N(1 + rng.Int64N(3e9))
			ops := []engine.Op{scriptOp(rng), scriptOp(rng)}
			for i := range ops {
				if call := ops[i].Script; call != nil {
					ops[i].Key = []byte{'s', byte(call.ID) / 2} // most scripts beside each other share their keys
					makeExtreme(rng, call)
				}
			}
			requireAlike(t, replicas, block{at, ops})
		}
	}
}

// makeExtreme replaces arguments by extreme ones that an entry can have.
func makeExtreme(rng *rand.Rand, call *engine.Script) {
	for i := range call.Args {
		before := call.Args[i]
		if call.Args[i] = extremes[rng.IntN(len(extremes))]; !call.Valid() {
			call.Args[i] = before
		}
	}
}
