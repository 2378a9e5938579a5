package engine_test

import (
	"fmt"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/race"
)

// greedyStartNs is when the greedy callers start: an ordinary date.
const greedyStartNs = int64(1_700_000_000e9) + 123_456_789

// caller asks one token bucket and counts the units that it gets.
type caller struct {
	table   *engine.Table
	limit   engine.Limit
	nowNs   int64
	granted int64
	out     [1]engine.Decision
	ops     [1]engine.Op
}

func newCaller(r engine.Rate, burst int64) *caller {
	return &caller{
		table: engine.NewTable(engine.Options{Shards: 1}),
		limit: engine.Limit{Algorithm: engine.TokenBucket, Rate: r, Max: burst},
		nowNs: greedyStartNs,
	}
}

// ask asks for n units now. A partial request takes what is left.
func (c *caller) ask(n int64, partial bool) engine.Decision {
	c.ops[0] = engine.Op{Key: []byte("greedy"), Limit: c.limit, Cost: n, Partial: partial}
	c.table.Decide(engine.Stamp{NowNs: c.nowNs}, c.ops[:], c.out[:])
	if partial {
		c.granted += c.out[0].Allowed
	} else {
		c.granted += n * c.out[0].Allowed
	}
	return c.out[0]
}

// due returns floor(burst + rate x t), which the definition grants by now.
func (c *caller) due() int64 {
	return whole(plus(num(c.limit.Max), times(perNs(c.limit.Rate), num(c.nowNs-greedyStartNs))))
}

var greedyRates = []string{
	"10/s", "3/7s", "1/6s", "999983/s", "7/1d", "1/s", "1000/h", "3/500ms", "1000003/s",
	"10000000/s", "2/3ns", "1/366d",
}

func greedyRate(t *testing.T, s string) engine.Rate {
	r, err := engine.ParseRate([]byte(s))
	require.NoError(t, err)
	return r
}

// TestGreedyAsksOnTheInstant checks that a unit is available at its exact nanosecond and not one nanosecond earlier.
func TestGreedyAsksOnTheInstant(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	const burst = 3
	for _, rate := range greedyRates {
		t.Run(rate, func(t *testing.T) {
			c := newCaller(greedyRate(t, rate), burst)
			r := c.limit.Rate
			for range burst {
				require.EqualValues(t, 1, c.ask(1, false).Allowed)
			}
			// Unit k after the burst becomes available ceil(k / rate) after the start.
			for k := int64(1); k <= 100_000 && k < endOfTimeNs/r.PerNs; k++ {
				at := greedyStartNs + saturated(ceil(over(num(k), perNs(r))))
				if at > c.nowNs {
					c.nowNs = at - 1
					require.Zero(t, c.ask(1, false).Allowed, "unit %d must not come early", k)
				}
				c.nowNs = at
				require.EqualValues(t, 1, c.ask(1, false).Allowed, "unit %d must be available", k)
				require.Equal(t, burst+k, c.granted)
			}
			require.LessOrEqual(t, c.granted, c.due())
		})
	}
}

// TestGreedyAsksAllTheTime checks that a caller gets exactly what the definition grants. It takes everything at ten
// to ten million requests a second.
func TestGreedyAsksAllTheTime(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	const asks = 150_000
	for _, everyNs := range []int64{100e6, 1e6, 12_345, 1_000, 100} {
		for _, rate := range greedyRates {
			t.Run(fmt.Sprintf("%s/every%dns", rate, everyNs), func(t *testing.T) {
				c := newCaller(greedyRate(t, rate), engine.MaxUnits/4)
				c.ask(c.limit.Max, false)
				check := dueChecker(c)
				for i := range int64(asks) {
					c.nowNs = greedyStartNs + i*everyNs
					c.ask(engine.MaxUnits, true)
					check(t)
				}
			})
		}
	}
}

// dueChecker compares the granted units with the definition in integers. It is fast enough for every request.
func dueChecker(c *caller) func(*testing.T) {
	units, per := big.NewInt(c.limit.Rate.Units), big.NewInt(c.limit.Rate.PerNs)
	due := new(big.Int)
	return func(t *testing.T) {
		due.SetInt64(c.nowNs - greedyStartNs)
		due.Div(due.Mul(due, units), per)
		if due.Int64()+c.limit.Max != c.granted {
			require.Equal(t, due.Int64()+c.limit.Max, c.granted, "%d ns after the start", c.nowNs-greedyStartNs)
		}
	}
}

// TestGreedyForDays checks that a caller never loses a unit in three simulated days. It asks in bursts of ten million
// a second, with gaps.
func TestGreedyForDays(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	for _, rate := range greedyRates {
		t.Run(rate, func(t *testing.T) {
			c := newCaller(greedyRate(t, rate), engine.MaxUnits/4)
			c.ask(c.limit.Max, false)
			check := dueChecker(c)
			for c.nowNs-greedyStartNs < 3*dayNs {
				for range 20 {
					c.nowNs += 100
					c.ask(engine.MaxUnits, true)
					check(t)
				}
				c.nowNs += 97 * 1e9
			}
		})
	}
}
