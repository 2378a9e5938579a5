package chaos

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Step is one fault of a schedule.
type Step struct {
	At   time.Duration // from the start of the run
	For  time.Duration // duration
	Kind Kind
	Seed uint64 // of every choice that the fault makes
}

func (s Step) String() string {
	return fmt.Sprintf("%8.3f s  %-16s for %v", s.At.Seconds(), s.Kind, s.For)
}

// These constants set the pace of a schedule. A fault, and the calm after it, are longer than an election at the
// timings of the harness, so that usefulness can be judged in some seconds.
const (
	firstFault = 5 * time.Second // time for the first answers of a healthy cluster, and some healthy seconds in any run
	shortest   = 500 * time.Millisecond
	longest    = 3 * time.Second
	leastCalm  = 1 * time.Second
	mostCalm   = 4 * time.Second
)

// Plan makes the schedule of one track of faults. It is a pure function of its arguments. Steps do not overlap, and the
// last step ends before the run.
func Plan(seed uint64, run time.Duration, kinds []Kind) []Step {
	rng := rand.New(rand.NewPCG(seed, uint64(len(kinds))))
	var steps []Step
	var deck []Kind
	for at := firstFault; ; {
		if len(deck) == 0 { // each kind once, in random order, before any kind twice
			deck = append(deck, kinds...)
			rng.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
		}
		s := Step{At: at, For: between(rng, shortest, longest), Kind: deck[0], Seed: rng.Uint64()}
		deck = deck[1:]
		if s.At+s.For > run {
			return steps
		}
		steps = append(steps, s)
		at += s.For + between(rng, leastCalm, mostCalm)
	}
}

func between(rng *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(rng.Int64N(int64(most-least))).Truncate(time.Millisecond)
}
