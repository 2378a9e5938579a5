package engine_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/race"
)

// waitCases is the default number of denials of TestWaitsEndAtTheFirstAdmission. WEIRTEST_WAIT_CASES sets another
// number, and WEIRTEST_WAIT_SEED other cases.
const waitCases = 4_000

// TestWaitsEndAtTheFirstAdmission compares the wait of a denial with the first time at which a table admits the same
// request: after the wait it is admitted, and at no earlier millisecond. A request that is told to wait for ever is
// never admitted.
//
// The exceptions are those of the documents. RETRYAFTER is a lower bound of waits. A hold that ends gives units back
// early. A strike that begins a penalty is told the penalty, although it took units of other limits, and a strike after
// the penalty may begin another.
func TestWaitsEndAtTheFirstAdmission(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	cases, seed := fromEnv(t, "WEIRTEST_WAIT_CASES", waitCases), fromEnv(t, "WEIRTEST_WAIT_SEED", 1)
	seen := map[string]int{}
	for n, i := 0, uint64(0); n < cases; i++ {
		w := newWaiting(rand.New(rand.NewPCG(uint64(seed), i)))
		d := w.decide(w.replay(), w.asked.at, w.asked.op)
		if d.Status != engine.OK || d.Allowed > 0 {
			continue
		}
		n++
		if why := w.untrue(d, seen); why != "" {
			t.Fatalf("case %d: %s\n%s", i, why, w.trace(d))
		}
	}
	t.Logf("%d denials: %v", cases, seen)
	if cases >= waitCases {
		for _, kind := range waitKinds {
			require.Greater(t, seen[kind], cases/200, kind)
		}
	}
}

// waitKinds are the kinds of denials that the cases must have.
var waitKinds = []string{"exact", "for ever", "behind a block", "of a check", "of a reserve", "with debt", "partial",
	"of high priority", "of several policies", "of leases", "of strikes", "at least RETRYAFTER"}

// TestWaitBehindABlock checks waits of requests on a blocked key: the later of the ends of the block, of RETRYAFTER and
// of the wait for the limit. A request that never fits is told so.
func TestWaitBehindABlock(t *testing.T) {
	b, bucket := newProbe(), bucketOf(1, 1e9, 3)
	require.EqualValues(t, 1, b.take(bucket, 3).Allowed)
	b.do(engine.Op{Code: engine.OpBlock, TTLNs: 1e9})
	require.EqualValues(t, 3000, b.take(bucket, 3).RetryMs, "the block of 1 s hides that the bucket needs 3 s")
	require.EqualValues(t, 1000, b.take(bucket, 1).RetryMs)
	require.EqualValues(t, -1, b.take(bucket, 4).RetryMs, "a cost above the limit never fits")
	b.do(setPolicy("p", engine.Policy{RetryNs: 5e9, Limits: []engine.PolicyLimit{{Limit: bucket}}}))
	ask := check(1, "p", "key")
	require.EqualValues(t, 5000, b.do(ask).RetryMs)
	ask.Cost = 4
	require.EqualValues(t, -1, b.do(ask).RetryMs)
	b.do(engine.Op{Code: engine.OpBlock, TTLNs: engine.Never})
	require.EqualValues(t, -1, b.take(bucket, 1).RetryMs)
	require.EqualValues(t, engine.NoPart, b.take(bucket, 1).Part, "only a block leaves the limit out")

	b.table.SetRules(engine.RulesOldest)
	b.do(engine.Op{Code: engine.OpBlock, TTLNs: 1e9})
	require.EqualValues(t, 1000, b.take(bucket, 4).RetryMs, "replicas decide entries of older versions as these did")
}

// waiting is a history, and a request after it.
type waiting struct {
	*rand.Rand
	history  []step
	asked    step
	at       engine.Stamp
	zone     *engine.Zone
	policies []*engine.Policy
	plain    engine.Limit
	holds    bool // a hold is made
}

var waitKeys = []string{"a", "ip:b", "x|ip:b"}

func newWaiting(r *rand.Rand) *waiting {
	w := &waiting{Rand: r, zone: &engine.Zone{Name: "UTC"}}
	w.at = engine.Stamp{NowNs: 1e15 + r.Int64N(1e15), WallOffsetNs: 1_700_000_000e9 + r.Int64N(1e12)}
	w.plain = w.limit().Limit
	if r.IntN(5) == 0 {
		w.plain = engine.Limit{Algorithm: engine.Concurrency, Max: 1 + r.Int64N(6)}
	}
	for i := range 1 + r.IntN(3) {
		w.policy(i)
	}
	for range r.IntN(18) {
		op := w.op()
		w.do(op)
		if r.IntN(3) == 0 {
			w.at.NowNs += w.span()
		}
	}
	op := w.op()
	for op.Code != engine.OpTake && op.Code != engine.OpCheck || op.Cost == 0 {
		op = w.op()
	}
	if op.Code == engine.OpCheck && r.IntN(3) == 0 || op.Code == engine.OpTake && r.IntN(6) == 0 {
		w.do(w.block())
	}
	w.asked = step{w.at, op}
	return w
}

func (w *waiting) do(op engine.Op) { w.history = append(w.history, step{w.at, op}) }

func (w *waiting) span() int64 {
	return w.Int64N([]int64{2e6, 1e9, 10e9, 100e9, 200_000e9}[w.IntN(5)])
}

func (w *waiting) limit() (l engine.PolicyLimit) {
	most, window := 1+w.Int64N(12), 1e6+w.Int64N([]int64{5e9, 60e9, 90_000e9}[w.IntN(3)])
	l.Limit.Max, l.Limit.WindowNs = most, window
	switch w.IntN(9) {
	case 0, 1:
		l.Limit = bucketOf(1+w.Int64N(3), window/4, most)
		if w.IntN(2) == 0 {
			l.WaitNs = w.span()
		}
	case 2:
		l.Limit = bucketOf(1+w.Int64N(3), window/4, most)
		l.Limit.Algorithm = engine.LeakyBucket
	case 3, 4:
		l.Limit.Algorithm = engine.FixedWindow
		switch l.Limit.Mode = engine.WindowMode(w.IntN(int(engine.Forever) + 1)); l.Limit.Mode {
		case engine.Aligned, engine.FromFirst:
		case engine.Forever:
			l.Limit.WindowNs = 0
		default:
			l.Limit.WindowNs, l.Zone = 0, w.zone
		}
	case 5:
		l.Limit.Algorithm = engine.SlidingLog
	case 6:
		l.Limit.Algorithm = engine.SlidingCounter
	default:
		l.Limit = bucketOf(1, window/4, most)
	case 8:
		if w.IntN(2) > 0 {
			return w.limit()
		}
		steps := []engine.Step{{Threshold: 1 + w.Int64N(3), PenaltyNs: 1 + w.span()},
			{Threshold: 4 + w.Int64N(3), PenaltyNs: 1 + w.span()}}
		l.Limit = engine.Limit{Algorithm: engine.Strike, WindowNs: window, Steps: engine.MakeSteps(steps),
			Strikes: engine.StrikeMode(w.IntN(4)), Max: steps[1].Threshold}
	}
	return l
}

func (w *waiting) policy(i int) {
	p := &engine.Policy{Shadow: w.IntN(8) == 0, Disabled: w.IntN(12) == 0}
	for range 1 + w.IntN(3) {
		p.Limits = append(p.Limits, w.limit())
	}
	if w.IntN(3) == 0 {
		p.Reserved = w.Int64N(1000)
	}
	if w.IntN(4) == 0 {
		p.RetryNs = w.span()
	}
	w.policies = append(w.policies, p)
	w.do(setPolicy(fmt.Sprint("p", i), *p))
	if w.IntN(6) == 0 {
		p.Overrides = []engine.Override{{Pattern: "a", UntilNs: engine.Never, Limits: []engine.PolicyLimit{w.limit()}}}
		w.do(engine.Op{Code: engine.OpPolicy, Key: fmt.Append(nil, "p", i), Policy: &engine.PolicyChange{
			Do: engine.PolicyOverride, Terms: &engine.Policy{Overrides: p.Overrides}}})
	}
}

func (w *waiting) key() []byte { return []byte(waitKeys[w.IntN(len(waitKeys))]) }

func (w *waiting) block() engine.Op {
	op := engine.Op{Code: engine.OpBlock, Key: w.key(), TTLNs: 1 + w.span()}
	if w.IntN(3) == 0 {
		op.Code = engine.OpBlockEverywhere
	}
	if w.IntN(12) == 0 {
		op.TTLNs = engine.Never
	}
	return op
}

func (w *waiting) op() (op engine.Op) {
	cost := w.Int64N(3)
	if w.IntN(12) == 0 {
		cost = w.Int64N(14)
	}
	switch n := w.IntN(20); {
	case n == 0:
		return w.block()
	case n == 1:
		return engine.Op{Code: engine.OpUnblock, Key: w.key()}
	case n == 2 && w.plain.Algorithm == engine.Concurrency:
		return engine.Op{Code: engine.OpRelease, Key: []byte("plain"), Text: fmt.Append(nil, w.IntN(4))}
	case n == 3 && w.IntN(2) == 0:
		w.holds = true
		return engine.Op{Code: engine.OpReserve, Key: w.key(), Text: []byte("p0"), ID: fmt.Append(nil, w.IntN(9)),
			Cost: 1 + cost, TTLNs: 1 + w.span()}
	case n < 9:
		op = engine.Op{Key: []byte("plain"), Limit: w.plain, Cost: cost, Partial: w.IntN(5) == 0}
		switch {
		case w.plain.Algorithm == engine.Concurrency:
			op.Text, op.TTLNs, op.Partial = fmt.Append(nil, w.IntN(4)), w.IntN64(2)*w.span(), false
		case w.plain.Algorithm == engine.TokenBucket && w.IntN(3) == 0 && !op.Partial:
			op.WaitNs = w.span()
		case w.plain.Algorithm == engine.LeakyBucket || w.plain.Algorithm == engine.Strike:
			op.Partial = false
		}
	default:
		op = engine.Op{Code: engine.OpCheck, Key: w.key(), Text: []byte("p0"), Cost: cost, High: w.IntN(3) == 0,
			Partial: w.IntN(5) == 0}
		for i := 1; i < len(w.policies) && w.IntN(2) == 0; i++ {
			op.Also = append(op.Also, engine.Pair{Policy: fmt.Append(nil, "p", i), Key: w.key()})
		}
	}
	if w.IntN(4) == 0 {
		op.From = []byte("ip:b")
	}
	return op
}

// IntN64 is IntN as an int64.
func (w *waiting) IntN64(n int) int64 { return int64(w.IntN(n)) }

// replay returns a table after the history.
func (w *waiting) replay() *engine.Table {
	table := engine.NewTable(engine.Options{Shards: 1})
	for _, s := range w.history {
		w.decide(table, s.at, s.op)
	}
	return table
}

func (w *waiting) decide(table *engine.Table, at engine.Stamp, op engine.Op) engine.Decision {
	if m := op.Limit.Mode; op.Code == engine.OpTake && m >= engine.Day && m <= engine.Year {
		op.Calendar = w.zone.Window(at.NowNs+at.WallOffsetNs, m)
	}
	return decideOne(table, step{at, op})
}

// after returns the answer to the request some milliseconds after it was denied.
func (w *waiting) after(ms int64) engine.Decision {
	table, at := w.replay(), w.asked.at
	w.decide(table, at, w.asked.op)
	at.NowNs += ms * 1e6
	return w.decide(table, at, w.asked.op)
}

// untrue says what is wrong with the wait of a denial, and counts the kinds of the denial.
func (w *waiting) untrue(d engine.Decision, seen map[string]int) string {
	w.count(d, seen)
	if d.RetryMs < 0 {
		for _, ms := range []int64{0, w.Int64N(1e6), w.Int64N(1e9), 500 * 86400e3, 5000 * 86400e3} {
			if !w.holds && w.after(ms).Allowed > 0 {
				return fmt.Sprintf("admitted after %d ms", ms)
			}
		}
		return ""
	}
	if d.ResetMs >= 0 && d.RetryMs > max(d.ResetMs, w.floorMs()) {
		return "the wait is longer than the time until the limiter is idle"
	}
	if then := w.after(d.RetryMs); then.Allowed == 0 && !w.ofStrike(then) && !w.struck(d) {
		return fmt.Sprintf("after %d ms the answer is %+v", d.RetryMs, then)
	}
	if d.RetryMs <= w.floorMs() || w.holds {
		return ""
	}
	seen["exact"]++
	earlier := []int64{d.RetryMs - 1}
	if d.RetryMs > 1 {
		earlier = append(earlier, w.Int64N(d.RetryMs))
	}
	for _, ms := range earlier {
		if w.after(ms).Allowed > 0 {
			return fmt.Sprintf("admitted after %d ms already", ms)
		}
	}
	return ""
}

// floorMs returns the longest RETRYAFTER of the policies that the request names, in milliseconds.
func (w *waiting) floorMs() (ms int64) {
	if w.asked.op.Code == engine.OpCheck {
		for _, p := range w.policies[:1+len(w.asked.op.Also)] {
			ms = max(ms, (p.RetryNs+1e6-1)/1e6)
		}
	}
	return ms
}

// limitOf returns the limit that an answer describes. A key that is blocked has none.
func (w *waiting) limitOf(d engine.Decision) *engine.Limit {
	if w.asked.op.Code == engine.OpTake {
		return &w.plain
	}
	p, key := w.policies[d.Pair], w.asked.op.PairAt(int(d.Pair)).Key
	limits := p.Limits
	if len(p.Overrides) > 0 && string(key) == p.Overrides[0].Pattern {
		limits = p.Overrides[0].Limits
	}
	if int(d.Part) >= len(limits) {
		return nil
	}
	return &limits[d.Part].Limit
}

// ofStrike reports whether an answer describes a limit of strikes.
func (w *waiting) ofStrike(d engine.Decision) bool {
	l := w.limitOf(d)
	return l != nil && l.Algorithm == engine.Strike
}

// struck reports whether the request itself began the penalty that denied it.
func (w *waiting) struck(d engine.Decision) bool {
	look := w.asked.op
	look.Cost, look.Partial = 0, false
	return w.ofStrike(d) && w.decide(w.replay(), w.asked.at, look).Allowed > 0
}

func (w *waiting) count(d engine.Decision, seen map[string]int) {
	op := &w.asked.op
	note := func(is bool, kind string) {
		if is {
			seen[kind]++
		}
	}
	note(d.RetryMs < 0, "for ever")
	note(d.Part == engine.NoPart, "behind a block")
	note(op.Partial, "partial")
	if l := w.limitOf(d); l != nil {
		note(l.Algorithm == engine.Concurrency, "of leases")
		note(l.Algorithm == engine.Strike, "of strikes")
	}
	if op.Code == engine.OpTake {
		note(op.WaitNs > 0, "with debt")
		return
	}
	seen["of a check"]++
	note(op.High, "of high priority")
	note(len(op.Also) > 0, "of several policies")
	note(w.policies[d.Pair].Reserved > 0 && !op.High, "of a reserve")
	note(d.RetryMs > 0 && d.RetryMs == w.floorMs(), "at least RETRYAFTER")
}

// trace describes the history and the denial.
func (w *waiting) trace(d engine.Decision) (text string) {
	for _, p := range w.policies {
		text += fmt.Sprintf("policy %+v\n", p.Limits)
		text += fmt.Sprintf("       reserved %d retry %d shadow %v disabled %v override %+v\n", p.Reserved, p.RetryNs,
			p.Shadow, p.Disabled, p.Overrides)
	}
	table := engine.NewTable(engine.Options{Shards: 1})
	for _, s := range append(w.history, w.asked) {
		if s.op.Code != engine.OpPolicy {
			text += fmt.Sprintf("+%d ns %s also %q = %+v\n", s.at.NowNs-w.history[0].at.NowNs, describe(s.op),
				s.op.Also, w.decide(table, s.at, s.op))
			continue
		}
		w.decide(table, s.at, s.op)
	}
	return text + fmt.Sprintf("denied: %+v", d)
}
