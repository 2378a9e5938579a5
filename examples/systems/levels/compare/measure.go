package main

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// sizes are the parameters of a measurement.
type sizes struct {
	limit     int
	window    time.Duration
	long      int
	decisions int
}

// algorithm is a limiter command. words returns its arguments after the key, for limit requests in a window.
type algorithm struct {
	name, command string
	words         func(limit int, window time.Duration) []any
}

var algorithms = []algorithm{
	{"token bucket", "RL.TOKENBUCKET", func(n int, w time.Duration) []any { return []any{rate(n, w), n} }},
	// One request leaves at once. The queue holds the others.
	{"leaky bucket", "RL.LEAKYBUCKET", func(n int, w time.Duration) []any { return []any{rate(n, w), n - 1} }},
	{"fixed window", "RL.FIXED", windowed},
	{"sliding log", "RL.SLIDING", windowed},
	{"sliding counter", "RL.SLIDINGCOUNTER", windowed},
}

func rate(n int, window time.Duration) string {
	return fmt.Sprintf("%d/%dms", n, window.Milliseconds())
}

func windowed(n int, window time.Duration) []any {
	return []any{fmt.Sprintf("%dms", window.Milliseconds()), n}
}

// figures are the results of one algorithm.
type figures struct {
	algorithm
	most  int // most requests that were let through in any window
	burst int // most requests that were let through in any tenth of a window
	again int // admitted at once, a window after the limit was used up

	bytes, longBytes int64         // of a key that has used up sizes.limit, and of one that has used up sizes.long
	each             time.Duration // per decision
}

func measureAll(ctx context.Context, w *weir, timed *redis.Client, s sizes) (all []figures, err error) {
	for i, a := range algorithms {
		f := figures{algorithm: a}
		p := probe{ctx: ctx, weir: w, algorithm: a, window: s.window, keys: 2 * i}
		var through []time.Duration
		if through, err = p.overload(s.limit); err != nil {
			return nil, err
		}
		f.most, f.burst = most(through, s.window), most(through, s.window/10)
		if f.again, err = p.again(s.limit); err != nil {
			return nil, err
		}
		if f.bytes, err = p.bytes(s.limit); err != nil {
			return nil, err
		}
		if f.longBytes, err = p.bytes(s.long); err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, timeAll(ctx, timed, all, s)
}

// timeAll measures the algorithms in turn, in several rounds, and keeps the shortest time of each. Other work of the
// machine can only make a decision slower.
func timeAll(ctx context.Context, rdb *redis.Client, all []figures, s sizes) error {
	const rounds = 5
	for round := range rounds {
		for i := range all {
			p := probe{ctx: ctx, algorithm: all[i].algorithm, window: s.window}
			each, err := p.time(rdb, s.limit, max(s.decisions/rounds, 1))
			if err != nil {
				return err
			}
			if round == 0 || each < all[i].each {
				all[i].each = each
			}
		}
	}
	return nil
}

// most returns how many of times, which ascend, lie within one span at most.
func most(times []time.Duration, span time.Duration) (n int) {
	first := 0
	for i, at := range times {
		for at-times[first] >= span {
			first++
		}
		n = max(n, i-first+1)
	}
	return n
}
