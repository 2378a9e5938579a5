package sim

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"
)

// weights are the relative frequencies of the kinds of faults.
type weights map[string]int

// everything is the usual mix.
var everything = weights{
	"crash": 12, "power loss": 8, "restart all": 3, "orderly restart": 6,
	"partition": 10, "one-way partition": 8, "slow links": 8, "connection resets": 8,
	"disk error": 8, "disk stall": 5, "snapshot": 10, "transfer": 7,
	"add node": 3, "remove node": 3, "lost disk": 4, "wall clock step": 6, "monotonic clock back": 2,
	"stale proposal": 4, "outlived denial": 4, "deposed at once": 4, "slow apply": 4,
	"slow forward": 3, "stop at election": 3,
	"stolen id": 3, "stolen address": 3, "forged join": 3, "late image": 3,
}

// moves is the mix of half of the runs with Config.Replicas. Most faults are those of the moves themselves, which would
// otherwise seldom get to their last steps.
var moves = weights{"move": 12, "add node": 1, "snapshot": 2, "transfer": 2, "crash": 1, "orderly restart": 1,
	"lost disk": 1}

// usual draws the kinds of a run from the usual mix. Only a cluster with several groups can lose one, and only one with
// Config.Replicas moves replicas.
func usual(c Config, rng *rand.Rand) weights {
	w := everything
	switch {
	case c.Replicas > 0 && c.Seed/2%2 == 0: // with either number of nodes
		return moves
	case c.Replicas > 0:
		w = maps.Clone(w)
		delete(w, "remove node") // its groups would lack a replica for long
		w = w.some(rng)
		w["move"] = moveWeight
		return w
	case c.Groups > 1:
		w = maps.Clone(w)
		w["remove group"] = 3
	}
	return w.some(rng)
}

// moveWeight is about a quarter of the weights of a run.
const moveWeight = 25

// some keeps about half of the kinds, because faults hide each other. Different runs therefore test different faults.
func (w weights) some(rng *rand.Rand) weights {
	kept := weights{}
	for _, kind := range slices.Sorted(maps.Keys(w)) {
		if rng.IntN(2) == 0 {
			kept[kind] = w[kind]
		}
	}
	if len(kept) == 0 {
		return w
	}
	return kept
}

func (w weights) draw(rng *rand.Rand) string {
	sum := 0
	for _, n := range w {
		sum += n
	}
	at := rng.IntN(sum)
	for _, kind := range slices.Sorted(maps.Keys(w)) {
		if at -= w[kind]; at < 0 {
			return kind
		}
	}
	return ""
}

// fault is one thing that goes wrong.
type fault struct {
	kind string
	wait time.Duration // since the previous fault
	pick uint64        // selects the target
}

// plan draws the faults of a run.
func plan(rng *rand.Rand, w weights, length time.Duration) (faults []fault) {
	pause := pauses[rng.IntN(len(pauses))]
	for at := time.Duration(0); ; {
		wait := time.Duration(rng.ExpFloat64() * float64(pause))
		if at += wait; at > length {
			return faults
		}
		faults = append(faults, fault{kind: w.draw(rng), wait: wait, pick: rng.Uint64()})
	}
}

// pauses are the mean times between faults. In some runs faults overlap, and in others each hits a healthy cluster.
var pauses = []time.Duration{150 * time.Millisecond, 350 * time.Millisecond, 1500 * time.Millisecond}

// between draws a duration.
func between(rng *rand.Rand, low, high time.Duration) time.Duration {
	return low + time.Duration(rng.Int64N(int64(high-low)))
}

// percent draws how much of the unsynced data survives a crash.
func percent(rng *rand.Rand) int { return []int{0, 50, 100}[rng.IntN(3)] }
