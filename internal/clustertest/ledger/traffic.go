package ledger

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Traffic is one kind of client behaviour. A harness first creates its policies, then draws operations, runs them and
// adds them to their trail.
type Traffic struct {
	Name     string
	Policies []Terms // none: each trail has its own policy, which changes, or a counter
	Counter  int64   // units of the counter that each trail has
	Refills  bool    // each trail is of a limit that refills, and has no end
	// Holds last from TTL to TTL+Spread.
	TTL, Spread time.Duration
	// OneSetter keeps policy changes of a trail from overlapping, and makes a change with an unknown outcome its
	// last. So LinearizableByGroup can judge the trail.
	OneSetter bool
	// Grows: requests name alternatives, holds are extended and report what was used so far, and policies write events.
	Grows bool
}

// Terms are a policy, and the number of its keys that a trail uses.
type Terms struct {
	Policy string
	Max    int64
	Keys   int
	Notify []int64 // thresholds, if Traffic.Grows
}

// lasting is traffic of checks and holds that do not expire. Its histories must be linearizable.
func lasting() *Traffic {
	return &Traffic{Name: "books", TTL: time.Hour,
		Policies: []Terms{{"book-org", 150, 1, []int64{20, 50, 100}}, {"book-team", 60, 2, nil},
			{"book-user", 30, 3, []int64{1, 50, 80, 99}}}}
}

// fleeting is traffic of checks and holds that expire soon, some before they are committed. Its histories must be
// explained.
func fleeting(ttl time.Duration) *Traffic {
	return &Traffic{Name: "fleeting", TTL: ttl, Spread: ttl,
		Policies: []Terms{{"fleet-org", 1 << 20, 1, nil}, {"fleet-team", 100, 2, nil}}}
}

// policySwaps is traffic of checks under a policy that changes meanwhile, with and without a reset of its usage. Its
// histories must be linearizable.
func policySwaps() *Traffic { return &Traffic{Name: "turns"} }

// Counters is traffic on counters with most units, a trail each. Its histories must be linearizable. The harness draws
// the operations.
func Counters(name string, most int64) *Traffic { return &Traffic{Name: name, Counter: most} }

// Refilling is traffic on a limit that refills. [OverAdmittedBucket] and [OverAdmittedWindow] judge its history.
func Refilling(name string) *Traffic { return &Traffic{Name: name, Refills: true} }

// trail returns the n-th trail.
func (t *Traffic) trail(n int) *Trail {
	name := fmt.Sprintf("%s:%d", t.Name, n)
	trail := &Trail{Name: name, Max: t.Counter, founded: t.founding(), most: maxOps, begun: 1,
		extended: map[string]int64{}}
	switch {
	case t.Refills:
		trail.most = 0
	case t.Counter > 0:
		trail.most = maxCounterOps
	}
	return trail
}

// most returns the units of a key of a policy.
func (t *Traffic) most(policy string) int64 {
	return t.Policies[slices.IndexFunc(t.Policies, func(p Terms) bool { return p.Policy == policy })].Max
}

// Founding returns the operations that create the policies.
func (t *Traffic) Founding() (ops []Op) {
	for _, p := range t.Policies {
		op := Op{Verb: Set, Pairs: []Pair{{Policy: p.Policy}}, Maxima: []int64{p.Max}}
		if t.Grows {
			op.Notify, op.Record = p.Notify, true
		}
		ops = append(ops, op)
	}
	return ops
}

// founding returns the beginning of a history, before the run's clock.
func (t *Traffic) founding() []Op {
	ops := t.Founding()
	for i := range ops {
		ops[i].CallNs, ops[i].ReturnNs, ops[i].Answer = -2, -1, Answer{Left: 1}
	}
	return ops
}

// Draw returns the next operation for a trail.
func (t *Traffic) Draw(r *rand.Rand, trail *Trail) Op {
	if t.Policies == nil {
		return drawPolicySwap(r, trail, t.OneSetter)
	}
	trail.mu.Lock()
	defer trail.mu.Unlock()
	n := r.IntN(20)
	if n < 8 {
		return t.divide(r, Op{Verb: Check, Pairs: t.pairs(r, trail.Name), Units: r.Int64N(4)})
	}
	if n < 13 || len(trail.holds) == 0 {
		hold := t.drawHold(r, trail)
		trail.holds = append(trail.holds, hold)
		return hold
	}
	hold := recent(r, trail.holds)
	switch {
	case n < 14:
		return hold // a repetition
	case t.Grows && n < 16:
		return trail.drawExtension(r, hold.ID)
	case t.Grows && n < 17:
		return Op{Verb: Commit, ID: hold.ID, Units: r.Int64N(6), Keep: true}
	case n < 18:
		return Op{Verb: Commit, ID: hold.ID, Units: r.Int64N(6)}
	}
	return Op{Verb: Cancel, ID: hold.ID}
}

func (t *Traffic) drawHold(r *rand.Rand, trail *Trail) Op {
	op := Op{
		Verb: Reserve, Pairs: t.pairs(r, trail.Name), ID: fmt.Sprintf("{%s}-%d", trail.Name, len(trail.holds)),
		Units: 1 + r.Int64N(5), TTLNs: int64(t.TTL),
	}
	if t.Spread > 0 {
		op.TTLNs += r.Int64N(t.Spread.Milliseconds()) * int64(time.Millisecond)
	}
	return t.divide(r, op)
}

// divide makes alternatives of the pairs of half of the requests.
func (t *Traffic) divide(r *rand.Rand, op Op) Op {
	for i := 1; t.Grows && i < len(op.Pairs); i++ {
		if r.IntN(2) == 0 {
			op.Else = append(op.Else, i)
			op.Split = op.Split || r.IntN(2) == 0
		}
	}
	return op
}

// drawExtension extends a hold: mostly with the next number, sometimes with the last one again, or one too many. The
// caller holds mu.
func (t *Trail) drawExtension(r *rand.Rand, id string) Op {
	next := t.extended[id] + 1 + int64(r.IntN(8)/7)
	if next > 1 && r.IntN(4) == 0 || next > maxExtensions {
		next--
	}
	op := Op{Verb: Extend, ID: id, Seq: min(next, maxExtensions), Units: 1 + next%3}
	if r.IntN(8) == 0 {
		op.Units++
	}
	return op
}

// recent returns one of the last holds, so that several clients complete it, and late.
func recent(r *rand.Rand, holds []Op) Op {
	const last = 6
	from := max(len(holds)-last, 0)
	return holds[from+r.IntN(len(holds)-from)]
}

// pairs returns one key of some of the policies, in random order.
func (t *Traffic) pairs(r *rand.Rand, name string) (pairs []Pair) {
	for len(pairs) == 0 {
		for _, i := range r.Perm(len(t.Policies)) {
			if p := t.Policies[i]; r.IntN(3) > 0 {
				pairs = append(pairs, Pair{p.Policy, tagged(name, r.IntN(p.Keys))})
			}
		}
	}
	return pairs
}

// Looks returns the operations that ask for the remaining units of all pairs of a trail.
func (t *Traffic) Looks(trail *Trail) (ops []Op) {
	if t.Policies == nil {
		for key := range policySwapKeys {
			ops = append(ops, Op{Verb: Check, Pairs: []Pair{policySwapPair(trail, key)}})
		}
	}
	for _, p := range t.Policies {
		for key := range p.Keys {
			ops = append(ops, Op{Verb: Check, Pairs: []Pair{{p.Policy, tagged(trail.Name, key)}}})
		}
	}
	return ops
}

// tagged returns a key of a history. All of its keys have one hash tag, so that one group of a cluster owns them.
func tagged(name string, key int) string { return fmt.Sprintf("{%s}:%d", name, key) }
