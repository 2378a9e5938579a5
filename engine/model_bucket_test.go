package engine_test

import (
	"math/big"
	"strings"

	"github.com/weir-project/weir/engine"
)

// tokens is a token bucket with a level at an instant. The level is negative in debt.
type tokens struct {
	limit engine.Limit
	level *big.Rat
	atNs  int64
}

func (b tokens) algorithm() engine.Algorithm { return engine.TokenBucket }
func (b tokens) remembered() engine.Limit    { return b.limit }

func (b tokens) used(at engine.Stamp) int64 {
	return wholeUp(minus(num(b.limit.Max), b.under(at, b.limit).level))
}

func (b tokens) idle(at engine.Stamp) bool {
	return b.under(at, b.limit).level.Cmp(num(b.limit.Max)) == 0
}

// under returns the bucket now, as it counts under limit l.
func (b tokens) under(at engine.Stamp, l engine.Limit) tokens {
	level := plus(b.level, times(num(at.NowNs-b.atNs), perNs(b.limit.Rate)))
	level = lesser(level, num(b.limit.Max))
	if l != b.limit {
		level = minus(num(l.Max), kept(minus(num(b.limit.Max), level), b.limit.Max, l.Max, l.Rate))
	}
	return tokens{l, level, at.NowNs}
}

// kept returns the units that stay used when the size of a bucket changes. They are rounded up to the precision of the
// new rate. They are cut to the new size, except for a debt that there was.
func kept(used *big.Rat, old, size int64, rate engine.Rate) *big.Rat {
	up := func(n *big.Rat) *big.Rat { return negative(floorTo(negative(n), rate.PerNs)) }
	debt := up(positive(minus(used, num(old))))
	return lesser(up(used), plus(num(size), debt))
}

func (b tokens) take(at engine.Stamp, op *engine.Op) (engine.Decision, rule) {
	b = b.under(at, op.Limit)
	rate, burst := perNs(b.limit.Rate), num(b.limit.Max)
	credit := lesser(times(rate, num(op.WaitNs)), num(engine.MaxUnits)) // the deepest debt
	reach := plus(b.level, credit)
	want, n := op.Cost, op.Cost
	if op.Partial {
		want, n = min(1, op.Cost), min(op.Cost, whole(reach))
	}
	d := engine.Decision{Limit: b.limit.Max}
	admitted := lessOrEqual(num(n), reach) && n >= want
	if !admitted {
		d.Remaining = whole(b.level)
		d.ResetMs = msUp(over(minus(burst, b.level), rate))
		d.RetryMs = msUp(over(minus(num(want), reach), rate))
		if !lessOrEqual(num(want), plus(burst, credit)) {
			d.RetryMs = -1
		}
		return d, nil
	}
	d.Allowed = granted(op, n)
	d.RetryMs = msUp(over(minus(num(n), b.level), rate))
	b.level = minus(b.level, num(n))
	d.Remaining = whole(b.level)
	d.ResetMs = msUp(over(minus(burst, b.level), rate))
	return taken(d, n, b)
}

// text returns the level in decimal, cut to billionths.
func (b tokens) text(at engine.Stamp) string {
	level := floorTo(b.under(at, b.limit).level, 1e9)
	if text := level.FloatString(9); strings.Contains(text, ".") {
		return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	}
	return level.RatString()
}

func (b tokens) refund(at engine.Stamp, n int64) (engine.Decision, rule) {
	after := b.under(at, b.limit)
	after.level = lesser(plus(after.level, num(n)), num(b.limit.Max))
	return afterRefund(at, n, after)
}

// queue is a leaky bucket as a queue of backlog units, one of which is in service.
type queue struct {
	limit   engine.Limit
	backlog *big.Rat
	atNs    int64
}

func (q queue) algorithm() engine.Algorithm { return engine.LeakyBucket }
func (q queue) remembered() engine.Limit    { return q.limit }
func (q queue) used(at engine.Stamp) int64  { return wholeUp(q.under(at, q.limit).backlog) }
func (q queue) idle(at engine.Stamp) bool   { return q.under(at, q.limit).backlog.Sign() == 0 }

// under returns the queue now, as it counts under limit l.
func (q queue) under(at engine.Stamp, l engine.Limit) queue {
	backlog := positive(minus(q.backlog, times(num(at.NowNs-q.atNs), perNs(q.limit.Rate))))
	if l != q.limit {
		backlog = kept(backlog, q.limit.Max+1, l.Max+1, l.Rate)
	}
	return queue{l, backlog, at.NowNs}
}

func (q queue) take(at engine.Stamp, op *engine.Op) (engine.Decision, rule) {
	q = q.under(at, op.Limit)
	rate, room := perNs(q.limit.Rate), num(q.limit.Max+1)
	after := plus(q.backlog, num(op.Cost))
	d := engine.Decision{Limit: q.limit.Max}
	if !lessOrEqual(after, room) {
		d.RetryMs = msUp(over(minus(after, room), rate))
		if op.Cost > q.limit.Max+1 {
			d.RetryMs = -1
		}
		d.Remaining = whole(minus(room, q.backlog))
		d.ResetMs = msUp(over(q.backlog, rate))
		return d, nil
	}
	d.Allowed = 1
	if op.Cost > 0 {
		d.RetryMs = msUp(over(minus(after, num(1)), rate))
	}
	q.backlog = after
	d.Remaining = whole(minus(room, after))
	d.ResetMs = msUp(over(after, rate))
	return taken(d, op.Cost, q)
}

func (q queue) refund(at engine.Stamp, n int64) (engine.Decision, rule) {
	after := q.under(at, q.limit)
	after.backlog = positive(minus(after.backlog, num(n)))
	return afterRefund(at, n, after)
}

// granted returns the value of Allowed for n admitted units.
func granted(op *engine.Op, n int64) int64 {
	if op.Partial {
		return n
	}
	return 1
}

// taken returns an admission and the state that follows, or no state if nothing was taken.
func taken(d engine.Decision, n int64, after rule) (engine.Decision, rule) {
	if n == 0 {
		return d, nil
	}
	return d, after
}
