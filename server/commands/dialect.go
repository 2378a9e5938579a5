package commands

import (
	"math"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limits"
	"github.com/weir-project/weir/server/arg"
)

var (
	paramMaxBurst = param{"max_burst", "requests that may come at once beyond the steady rate"}
	paramCount    = param{"count", "requests per period"}
	paramSeconds  = param{"period", "in whole seconds"}
)

func dialectCommands() []*command {
	return decisionDefaults([]*command{
		{
			name: "CL.THROTTLE", arity: -5, syntax: "key max_burst count period [quantity]",
			summary: "redis-cell's command",
			details: "A token bucket of `max_burst` + 1 that refills with `count` tokens a `period`. A quantity of " +
				"0 looks without taking.",
			params: []param{paramKey, paramMaxBurst, paramCount, paramSeconds,
				{"quantity", "tokens this request takes, 1 unless given"}},
			reply: "Five integers: limited (0 or 1), max_burst + 1, remaining, seconds until a retry may succeed " +
				"(-1: allowed, or no wait helps), " +
				"seconds until the bucket is full. Seconds are rounded up.",
			shown: []example{{"CL.THROTTLE user123 15 30 60 1", "0 16 15 -1 2", ""}},
			plan:  planCell, answer: answerCell,
		},
		{
			name: "THROTTLE", arity: -5, syntax: "key max_burst count period [quantity]",
			summary: "throttlecrab's command",
			details: "A token bucket of `max_burst` that refills with `count` tokens a `period`. A quantity of 0 " +
				"looks without taking. A quantity above " +
				"`max_burst` answers a retry of -1, where throttlecrab names a time after which it is denied again.",
			params: []param{paramKey, {"max_burst", "requests that may come at once"}, paramCount, paramSeconds,
				{"quantity", "tokens this request takes, 1 unless given"}},
			reply: "Five integers: allowed (1 or 0), max_burst, remaining, seconds until the bucket is full, " +
				"seconds until a retry may succeed " +
				"(0: allowed, -1: no wait helps). Seconds are rounded up.",
			shown: []example{{"THROTTLE user123 10 100 60", "1 10 9 1 0", ""}},
			plan:  planCrab, answer: answerCrab,
		},
		{
			name: "GCRA", arity: -5, syntax: "key max_burst count period [TOKENS n]",
			summary: "The command Redis built for 8.8 and withheld",
			details: "A token bucket of `max_burst` + 1 that refills with `count` tokens a `period`. Times are " +
				"seconds, as its code had them.",
			params: []param{paramKey, paramMaxBurst, paramCount, {"period", "in seconds, with at most nine decimals"},
				{"TOKENS n", "tokens this request takes, at least 1, 1 unless given"}},
			reply: "As CL.THROTTLE.",
			shown: []example{{"GCRA user123 4 10 1.5", "0 5 4 -1 1", ""}},
			plan:  planGCRA, answer: answerCell,
		},
		{
			name: "INCREX", arity: -2,
			syntax: "key [BYINT n] [LBOUND n] [UBOUND n] [SATURATE] [EX seconds|PX ms|EXAT time|PXAT " +
				"time|PERSIST] [ENX]",
			summary: "Redis 8.8's counter with bounds and a time to live",
			details: "Adds to a counter. A step beyond a bound is not taken, or with `SATURATE` only as far as the " +
				"bound. `ENX` sets the time to live only " +
				"where there is none, which makes `INCREX key UBOUND 100 EX 60 ENX` a window counter. `BYFLOAT` is " +
				"refused: weir counts whole units.",
			params: []param{paramKey, {"BYINT n", "the step, 1 unless given, may be negative"},
				{"LBOUND n", "the least value"}, {"UBOUND n", "the greatest value"},
				{"SATURATE", "go as far as the bound instead of not at all"},
				paramLifetime,
				{"PERSIST", "remove the time to live"}, {"ENX", "set the time to live only where there is none"}},
			reply: "Two integers: the value, and the step that was taken.",
			shown: []example{
				{"INCREX ratelimit:42 UBOUND 2 EX 60 ENX", "1 1", "the window begins"},
				{"INCREX ratelimit:42 BYINT 5 UBOUND 2 EX 60 ENX", "1 0", "too much: refused"},
				{"INCREX ratelimit:42 BYINT 5 UBOUND 2 SATURATE", "2 1", "as far as the bound"},
			},
			plan: planIncr, answer: answerIncr,
		},
	}, groupDialect)
}

// answerCell answers in the order of redis-cell, with -1 if there is no time to wait.
func answerCell(s *Session, _ []engine.Op, ds []engine.Decision) {
	d := &ds[0]
	retry := int64(-1)
	if d.Allowed == 0 {
		retry = wholeSeconds(d.RetryMs)
	}
	s.Array(5)
	s.Int(1 - d.Allowed)
	s.Int(d.Limit)
	s.Int(d.Remaining)
	s.Int(retry)
	s.Int(wholeSeconds(d.ResetMs))
}

// answerCrab answers in the order of throttlecrab. Compared with redis-cell, the flag is inverted, the limit is one
// lower, and the times are swapped. It answers 0 if there is no time to wait.
func answerCrab(s *Session, _ []engine.Op, ds []engine.Decision) {
	d := &ds[0]
	retry := int64(0)
	if d.Allowed == 0 {
		retry = wholeSeconds(d.RetryMs)
	}
	s.Array(5)
	s.Int(d.Allowed)
	s.Int(d.Limit)
	s.Int(d.Remaining)
	s.Int(wholeSeconds(d.ResetMs))
	s.Int(retry)
}

func answerIncr(s *Session, _ []engine.Op, ds []engine.Decision) {
	s.Array(2)
	s.Int(ds[0].Remaining)
	s.Int(ds[0].Allowed)
}

// wholeSeconds rounds up, so that a client which waits that long is never early. It keeps -1.
func wholeSeconds(ms int64) int64 {
	if ms < 0 {
		return -1
	}
	return (ms + 999) / 1000
}

// The following functions turn commands of other limiters into operations of the engine. All of them are token buckets
// except INCREX, which is a counter.

// planCell reads redis-cell's CL.THROTTLE key max_burst count period [quantity]. Its max_burst comes in addition to one
// request that is always possible.
func planCell(s *Session, args [][]byte) error { return planThrottle(s, args, 1) }

// planCrab reads throttlecrab's THROTTLE, whose max_burst is the whole burst.
func planCrab(s *Session, args [][]byte) error { return planThrottle(s, args, 0) }

func planThrottle(s *Session, args [][]byte, extra int64) error {
	if len(args) > 6 {
		return arg.ErrSyntax
	}
	period, err := limits.Units("period", args[4], 1, math.MaxInt64)
	if err != nil {
		return err
	}
	op, err := planBucket(s, args, extra, period, 1e9)
	if err == nil && len(args) > 5 {
		op.Cost, err = limits.Units("quantity", args[5], 0, engine.MaxUnits)
	}
	return err
}

// planGCRA reads GCRA key max_burst count period [TOKENS n]. The period may be a decimal number of seconds.
func planGCRA(s *Session, args [][]byte) error {
	period, unitNs, ok := decimalSeconds(args[4])
	if !ok {
		return limits.Bad("period",
			"must be a number of seconds above 0 and below 1000000000000, with at most nine decimals", args[4])
	}
	op, err := planBucket(s, args, 1, period, unitNs)
	switch {
	case err != nil:
	case len(args) == 5:
	case len(args) != 7 || !limits.Is(args[5], "TOKENS"):
		err = arg.ErrSyntax
	default:
		op.Cost, err = limits.Units("TOKENS", args[6], 1, engine.MaxUnits)
	}
	return err
}

// planBucket begins a decision of a token bucket from the arguments key, max_burst and count. The size of the bucket is
// max_burst + extra. The period is period times unitNs nanoseconds.
func planBucket(s *Session, args [][]byte, extra, period, unitNs int64) (*engine.Op, error) {
	op, err := s.take(args[1], engine.TokenBucket)
	if err != nil {
		return nil, err
	}
	burst, err := limits.Units("max_burst", args[2], 1-extra, engine.MaxUnits-extra)
	if err != nil {
		return nil, err
	}
	count, err := limits.Units("count", args[3], 1, engine.MaxUnits)
	if err != nil {
		return nil, err
	}
	op.Limit.Max = burst + extra
	if op.Limit.Rate, err = engine.MakeRate(count, period, unitNs); err != nil {
		return nil, errDialectRate
	}
	return op, nil
}

// decimalSeconds reads seconds with up to nine decimals. It returns them exactly, as n times unitNs nanoseconds. The
// value must be above zero and below 10^12, as in Redis.
func decimalSeconds(b []byte) (n, unitNs int64, ok bool) {
	const most = 1e12
	unitNs = 1e9
	whole, fraction := b, []byte(nil)
	for i, c := range b {
		if c == '.' {
			whole, fraction = b[:i], b[i+1:]
			if len(fraction) == 0 || len(fraction) > 9 {
				return 0, 0, false
			}
			break
		}
	}
	n, ok = limits.Int(whole)
	if !ok || n < 0 || n >= most || whole[0] == '-' {
		return 0, 0, false
	}
	for len(fraction) > 0 && fraction[len(fraction)-1] == '0' {
		fraction = fraction[:len(fraction)-1]
	}
	for _, c := range fraction {
		if c-'0' > 9 || n > (math.MaxInt64-9)/10 {
			return 0, 0, false
		}
		n, unitNs = n*10+int64(c-'0'), unitNs/10
	}
	return n, unitNs, n > 0
}
