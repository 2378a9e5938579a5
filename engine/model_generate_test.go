package engine_test

import (
	"math"
	"math/rand/v2"

	"github.com/weir-project/weir/engine"
)

const (
	dayNs  = int64(24 * 3600e9)
	hourNs = int64(3600e9)
	// endOfTimeNs is where histories stop, well inside the legal range.
	endOfTimeNs = int64(1 << 61)
)

// step is one operation of a history at its time.
type step struct {
	at engine.Stamp
	op engine.Op
}

// generator makes random histories that stay near the edges of the algorithms: repeated instants, the instants in the
// last answer, and window boundaries.
type generator struct {
	*rand.Rand
	algorithms []engine.Algorithm // the first is used most
	limits     map[engine.Algorithm][]engine.Limit
	keys       int
	at         engine.Stamp
	scaleNs    int64                // the scale of the durations in this history
	lifetimeNs int64                // of IDs
	sent       map[string]engine.Op // the last operation by key and ID
	last       engine.Decision
}

var everyAlgorithm = []engine.Algorithm{
	engine.TokenBucket, engine.LeakyBucket, engine.FixedWindow, engine.SlidingLog,
	engine.SlidingCounter, engine.Concurrency, engine.Strike,
}

// newGenerator starts a history mostly of one algorithm, or of all if a is NoAlgorithm.
func newGenerator(rng *rand.Rand, a engine.Algorithm, keys int) *generator {
	g := &generator{Rand: rng, keys: keys, limits: map[engine.Algorithm][]engine.Limit{},
		sent: map[string]engine.Op{}}
	g.scaleNs = pick(g, int64(1), 10, 1e3, 1e6, 1e9, 60e9, dayNs, engine.MaxWindowNs)
	g.lifetimeNs = pick(g, int64(1), 1e6, 60e9)
	g.at.NowNs = pick(g, int64(1), 1e9, 1_700_000_000e9, endOfTimeNs-400*dayNs)
	g.at.WallOffsetNs = pick(g, int64(0), 1, 1_700_000_000e9, g.Int64N(dayNs))
	g.algorithms = append([]engine.Algorithm{a}, everyAlgorithm...)
	if a == engine.NoAlgorithm {
		g.algorithms = append([]engine.Algorithm{engine.Counter}, everyAlgorithm...)
	}
	for _, a := range everyAlgorithm {
		for range 3 {
			g.limits[a] = append(g.limits[a], g.limit(a))
		}
	}
	return g
}

func pick[T any](g *generator, choices ...T) T { return choices[g.IntN(len(choices))] }

func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

// duration returns a duration near the scale of the history, sometimes at the legal edge.
func (g *generator) duration() int64 {
	d := pick(g, g.scaleNs, g.scaleNs, 1+g.Int64N(10*min(g.scaleNs, engine.MaxWindowNs/10)), 7*g.scaleNs/3,
		1, engine.MaxWindowNs)
	return min(max(d, 1), engine.MaxWindowNs)
}

func (g *generator) rate() engine.Rate {
	units := pick(g, int64(1), 2, 3, 7, 1+g.Int64N(20), 999_983, engine.MaxUnits, engine.MaxUnits-1)
	per := g.duration()
	for a, b := units, per; ; a, b = b, a%b {
		if b == 0 {
			return engine.Rate{Units: units / a, PerNs: per / a}
		}
	}
}

// limit returns some legal limit of an algorithm.
func (g *generator) limit(a engine.Algorithm) engine.Limit {
	l := engine.Limit{Algorithm: a}
	l.Max = pick(g, int64(1), 2, 3, 1+g.Int64N(12), 1+g.Int64N(12), 100, 1e6, engine.MaxUnits)
	switch a {
	case engine.TokenBucket, engine.LeakyBucket:
		l.Rate = g.rate()
		if a == engine.LeakyBucket && g.chance(20) {
			l.Max = 0
		}
	case engine.FixedWindow:
		l.Mode = engine.WindowMode(g.IntN(int(engine.Forever) + 1))
		if l.Mode <= engine.FromFirst {
			l.WindowNs = g.duration()
		}
	case engine.SlidingLog, engine.SlidingCounter:
		l.WindowNs = g.duration()
	case engine.Strike:
		l.WindowNs = g.duration()
		l.Steps, l.Max = g.steps()
		l.Strikes = pick(g, 0, 0, engine.Attempts, engine.Extend, engine.Attempts|engine.Extend)
	}
	if a == engine.SlidingLog {
		l.Max = min(l.Max, engine.MaxLogUnits)
	}
	return l
}

func (g *generator) steps() (engine.Steps, int64) {
	var steps []engine.Step
	threshold := int64(0)
	for range 1 + g.IntN(pick(g, 3, engine.MaxSteps)) {
		threshold += 1 + g.Int64N(5)
		steps = append(steps, engine.Step{Threshold: threshold, PenaltyNs: g.duration(), Delay: g.chance(30)})
	}
	if g.chance(5) {
		threshold = engine.MaxLogUnits
		steps[len(steps)-1].Threshold = threshold
	}
	return engine.MakeSteps(steps), threshold
}

// next returns the next step of the history. saw must then receive its answer.
func (g *generator) next() step {
	if to := g.at.NowNs + g.wait(); to < endOfTimeNs {
		g.at.NowNs = to
	}
	if g.chance(1) {
		g.at.WallOffsetNs += g.Int64N(5) // the wall clock is slewed
	}
	s := step{g.at, g.op()}
	if g.chance(2) {
		s.at.NowNs = max(1, s.at.NowNs-g.Int64N(3*g.scaleNs)) // a stamp that comes late
	}
	return s
}

func (g *generator) saw(d engine.Decision) { g.last = d }

// wait returns the time until the next operation.
func (g *generator) wait() int64 {
	around := pick(g, int64(-1e6), -1, 0, 1)
	switch g.IntN(14) {
	case 0:
		return g.Int64N(4)
	case 1:
		return g.named(g.last.RetryMs) + max(around, -g.named(g.last.RetryMs))
	case 2:
		return g.named(g.last.ResetMs) + max(around, -g.named(g.last.ResetMs))
	case 3:
		l := g.someLimit()
		return max(0, max(l.WindowNs, l.Rate.PerNs)*g.Int64N(3)+around)
	case 4:
		l := g.someLimit()
		return max(0, alignedStart(g.at, max(1, l.WindowNs))+l.WindowNs-g.at.NowNs+around)
	case 5:
		return g.Int64N(2 * g.scaleNs)
	case 6:
		return 1e6*g.Int64N(4) + g.Int64N(2)
	case 7:
		return max(0, g.lifetimeNs+around)
	}
	return 0
}

// named converts a wait in an answer to nanoseconds. It shortens the wait so that the history does not exceed
// endOfTimeNs.
func (g *generator) named(ms int64) int64 {
	if ms < 0 || ms > endOfTimeNs/1e6 {
		return 0
	}
	return ms * 1e6
}

func (g *generator) someLimit() engine.Limit {
	limits := g.limits[g.algorithm()]
	if len(limits) == 0 {
		return engine.Limit{}
	}
	return limits[g.IntN(len(limits))]
}

// algorithm returns an algorithm, most of the time the first one of the generator.
func (g *generator) algorithm() engine.Algorithm {
	if g.algorithms[0] == engine.Counter && g.keys > 3 || g.chance(3) {
		return pick(g, g.algorithms...)
	}
	return g.algorithms[0]
}

// op returns an operation. An operation with an ID often repeats an earlier one, and rarely comes from an older version
// of weir, which does not bind an ID to its request.
func (g *generator) op() engine.Op {
	op := engine.Op{Key: g.key()}
	if !g.chance(12) {
		if g.fill(&op); op.Limit.Algorithm == engine.Concurrency && !g.chance(10) {
			op.Bind()
		}
		return op
	}
	op.ID = []byte(pick(g, "a", "b", "c"))
	name := string(op.Key) + " " + string(op.ID)
	if first, ok := g.sent[name]; ok && g.chance(60) {
		if op = first; op.Calendar != nil {
			op.Calendar = g.calendar()
		}
		return op
	}
	if g.fill(&op); op.Incr == nil && op.Code != engine.OpForget && !g.chance(10) {
		op.Bind()
	}
	if len(op.ID) > 0 {
		g.sent[name] = op
	}
	return op
}

// fill makes op an operation on its key.
func (g *generator) fill(op *engine.Op) {
	a := g.algorithm()
	switch roll := g.IntN(100); {
	case roll < 4:
		op.Code, op.Cost = engine.OpRefund, g.cost(g.someLimit().Max)
	case roll < 5:
		op.Code = pick(g, engine.OpReset, engine.OpForget)
		if op.Code == engine.OpForget {
			op.ID = nil // with an ID it would only drop the remembered answer
		}
	case roll < 6:
		op.Code, op.TTLNs, op.Text = pick(g, engine.OpBlock, engine.OpBlockEverywhere), g.duration(), []byte("abuse")
		op.Keep = op.Code == engine.OpBlock && g.chance(50)
		if g.chance(20) {
			op.TTLNs = engine.Never
		}
	case roll < 9:
		op.Code = engine.OpUnblock
	case a == engine.Counter || roll < 10:
		op.Code, op.Incr = engine.OpIncr, g.incr()
	case a == engine.Concurrency && roll < 35 || roll < 11:
		op.Code, op.TTLNs = engine.OpRelease, g.ttl()
		if g.chance(40) {
			op.Code = engine.OpRenew
		}
		op.Text = g.holder()
	default:
		g.decision(op, a)
	}
}

// decision makes op a decision, mostly under the first limit of the history.
func (g *generator) decision(op *engine.Op, a engine.Algorithm) {
	op.Limit = g.limits[a][0]
	if g.chance(12) {
		op.Limit = pick(g, g.limits[a]...)
	}
	op.Cost, op.Dry = g.cost(op.Limit.Max), g.chance(5)
	if g.chance(10) {
		op.From = g.key()
	}
	switch a {
	case engine.TokenBucket:
		op.Partial = g.chance(20)
		if g.chance(25) {
			op.WaitNs = g.duration()
		}
	case engine.FixedWindow:
		op.Partial = g.chance(20)
		if op.Limit.Mode != engine.Aligned && op.Limit.Mode != engine.FromFirst {
			op.Calendar = g.calendar()
		}
	case engine.SlidingLog, engine.SlidingCounter:
		op.Partial = g.chance(20)
	case engine.Concurrency:
		op.Text, op.TTLNs = g.holder(), g.ttl()
	}
}

func (g *generator) key() []byte {
	n := g.IntN(g.keys)
	key := []byte{'k', byte(n), byte(n >> 8)}
	switch {
	case g.chance(8): // keys that a block everywhere covers
		return append([]byte("a|b|"), key...)
	case g.chance(8):
		return append([]byte("ip:"), key...)
	case g.chance(16):
		return append([]byte("b|"), key...)
	}
	return key
}

func (g *generator) holder() []byte { return []byte{'h', byte(g.IntN(6))} }

func (g *generator) ttl() int64 {
	if g.chance(25) {
		return 0
	}
	return g.duration()
}

// cost returns a cost that is usually small compared with the limit, sometimes at or above it.
func (g *generator) cost(limit int64) int64 {
	c := pick(g, 0, 1, 1, 1, 1, 2, 3, limit/2, limit, limit-1, limit+1, limit+2, g.Int64N(limit/3+2))
	if g.chance(1) {
		c = engine.MaxUnits
	}
	return min(max(c, 0), engine.MaxUnits)
}

// calendar returns a window of the history's scale. Sometimes it was resolved just before its end and is decided
// after it.
func (g *generator) calendar() *engine.Calendar {
	windowNs := max(g.scaleNs, 2)
	endNs := alignedStart(g.at, windowNs) + g.at.WallOffsetNs + windowNs
	if g.chance(30) {
		endNs -= windowNs
	}
	if g.chance(5) {
		endNs -= windowNs
	}
	return &engine.Calendar{EndNs: endNs, NextEndNs: endNs + windowNs}
}

func (g *generator) incr() *engine.Incr {
	i := &engine.Incr{By: g.Int64N(7) - 2, Lower: math.MinInt64, Upper: math.MaxInt64, Saturate: g.chance(30)}
	if g.chance(60) {
		i.Lower, i.Upper = g.Int64N(3)-3, 1+g.Int64N(8)
	}
	if g.chance(6) {
		i.By = pick(g, int64(math.MaxInt64), math.MinInt64, engine.MaxUnits)
	}
	i.Expire = engine.ExpireMode(g.IntN(3))
	if i.Expire == engine.ExpireIn {
		i.ExpireNs, i.OnlyIfNew = g.duration(), g.chance(50)
		if g.chance(5) {
			i.ExpireNs = -g.Int64N(2)
		}
	}
	return i
}
