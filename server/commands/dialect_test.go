package commands

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/weir-project/weir/engine"
)

// step is one command of a dialect and its documented answer. Limiter time advances by the pause before it.
type step struct{ pauseMs, send, want string }

func runSteps(t *testing.T, steps []step) {
	t.Helper()
	runStepsOn(t, defaultClient(t), steps)
}

func runStepsOn(t *testing.T, c *testClient, steps []step) {
	t.Helper()
	for _, step := range steps {
		if step.pauseMs != "" {
			c.say("DEBUG CLOCK ADVANCE " + step.pauseMs)
		}
		assert.Equal(t, step.want, c.say(step.send), step.send)
	}
}

// TestRedisCell follows redis-cell's README: 30 requests a minute, and a burst of 15 beyond the first.
func TestRedisCell(t *testing.T) {
	steps := []step{{"", "CL.THROTTLE user123 15 30 60 1", "0 16 15 -1 2"}}
	for left := 14; left >= 0; left-- {
		steps = append(steps, step{"", "CL.THROTTLE user123 15 30 60", "0 16 " + decimal(int64(left)) + " -1 " +
			decimal(int64(2*(16-left)))})
	}
	runSteps(t, append(steps,
		step{"", "CL.THROTTLE user123 15 30 60", "1 16 0 2 32"},
		step{"", "cl.throttle user123 15 30 60 0", "0 16 0 -1 32"}, // a quantity of 0 looks
		step{"1", "CL.THROTTLE user123 15 30 60", "1 16 0 2 32"},   // 1.999 s are 2
		step{"1000", "CL.THROTTLE user123 15 30 60", "1 16 0 1 31"},
		step{"999", "CL.THROTTLE user123 15 30 60", "0 16 0 -1 32"},
		step{"", "CL.THROTTLE user123 15 30 60 17", "1 16 0 -1 32"}, // never fits, limited and -1
		step{"", "DEL user123", "1"},
		step{"", "CL.THROTTLE user123 15 30 60 16", "0 16 0 -1 32"},
	))
}

// TestThrottlecrab differs from redis-cell: the flag is inverted, the burst has no additional request, and the times
// are swapped.
func TestThrottlecrab(t *testing.T) {
	runSteps(t, []step{
		{"", "THROTTLE user:123 10 100 60", "1 10 9 1 0"},
		{"", "THROTTLE user:123 10 100 60 9", "1 10 0 6 0"},
		{"", "THROTTLE user:123 10 100 60 1", "0 10 0 6 1"},
		{"", "THROTTLE user:123 10 100 60 0", "1 10 0 6 0"},
		{"", "THROTTLE user:123 10 100 60 11", "0 10 0 6 -1"},
		{"600", "THROTTLE user:123 10 100 60", "1 10 0 6 0"},
	})
}

func TestGCRA(t *testing.T) {
	runSteps(t, []step{
		{"", "GCRA user 4 10 1.5", "0 5 4 -1 1"},
		{"", "GCRA user 4 10 1.5 TOKENS 4", "0 5 0 -1 1"},
		{"", "gcra user 4 10 1.5 tokens 2", "1 5 0 1 1"},
		{"", "GCRA user 4 10 1.5 TOKENS 6", "1 5 0 -1 1"},
		{"150", "GCRA user 4 10 1.5", "0 5 0 -1 1"},
		{"", "GCRA slow 0 1 31622400", "0 1 0 -1 31622400"},
	})
}

// TestIncrex follows the documentation of Redis 8.8.
func TestIncrex(t *testing.T) {
	runSteps(t, []step{
		{"", "INCREX plain", "1 1"},
		{"", "INCREX plain BYINT 10", "11 10"},
		{"", "INCREX plain BYINT -20", "-9 -20"},
		{"", "INCREX plain BYINT -1 LBOUND -9", "-9 0"}, // out of bounds: nothing happens
		{"", "INCREX plain BYINT -5 LBOUND -12 SATURATE", "-12 -3"},
		{"", "PTTL plain", "-1"},
		{"", "TYPE plain", "counter"},

		// The documented limiter: 3 in 60 seconds from the first.
		{"", "INCREX ratelimit:u BYINT 1 UBOUND 3 EX 60 ENX", "1 1"},
		{"30000", "INCREX ratelimit:u BYINT 1 UBOUND 3 EX 60 ENX", "2 1"},
		{"", "PTTL ratelimit:u", "30000"},
		{"", "INCREX ratelimit:u BYINT 2 UBOUND 3 EX 60 ENX", "2 0"},
		{"", "INCREX ratelimit:u BYINT 2 UBOUND 3 EX 60 ENX SATURATE", "3 1"},
		{"", "INCREX ratelimit:u UBOUND 3 EX 90", "3 0"}, // refused: the time to live stays
		{"", "PTTL ratelimit:u", "30000"},
		{"30000", "INCREX ratelimit:u BYINT 1 UBOUND 3 EX 60 ENX", "1 1"},
		{"", "INCREX ratelimit:u PX 1500", "2 1"},
		{"", "PTTL ratelimit:u", "1500"},
		{"", "INCREX ratelimit:u PERSIST", "3 1"},
		{"", "PTTL ratelimit:u", "-1"},

		// A minute of clock has passed since 12:00:00.
		{"", "INCREX at EXAT 1795262470", "1 1"},
		{"", "PTTL at", "10000"},
		{"", "INCREX at PXAT 1795262461500", "2 1"},
		{"", "PTTL at", "1500"},
		{"", "INCREX at EXAT 1795262460", "3 1"}, // now: gone at once
		{"", "EXISTS at", "0"},
	})
}

func TestDecimalSeconds(t *testing.T) {
	for _, test := range []struct {
		text      string
		n, unitNs int64
	}{
		{"60", 60, 1e9}, {"1.5", 15, 1e8}, {"1.50", 15, 1e8}, {"2.000", 2, 1e9}, {"0.000000001", 1, 1}, {"0.1", 1, 1e8},
		{"999999999999", 999999999999, 1e9},
	} {
		n, unitNs, ok := decimalSeconds([]byte(test.text))
		assert.True(t, ok, test.text)
		assert.Equal(t, test.n, n, test.text)
		assert.Equal(t, test.unitNs, unitNs, test.text)
	}
	for _, text := range []string{"", ".", "1.", ".5", "0", "0.0", "-1", "1.0000000001", "1e3", "inf", "nan",
		"1000000000000", "99999999999.999999999", "1.x", "1.-5"} {
		_, _, ok := decimalSeconds([]byte(text))
		assert.False(t, ok, text)
	}
}

func TestRateOf(t *testing.T) {
	for _, test := range []struct {
		count, period, unitNs int64
		want                  engine.Rate
	}{
		{30, 60, 1e9, engine.Rate{Units: 1, PerNs: 2e9}},
		{1e9, 1, 1e9, engine.Rate{Units: 1, PerNs: 1}},
		{1 << 53, 1, 1, engine.Rate{Units: 1 << 53, PerNs: 1}},
		{1 << 53, 1 << 62, 1, engine.Rate{Units: 1, PerNs: 512}},
		{3, 31622400 * 3, 1e9, engine.Rate{Units: 1, PerNs: engine.MaxWindowNs}},
	} {
		got, err := engine.MakeRate(test.count, test.period, test.unitNs)
		assert.NoError(t, err)
		assert.Equal(t, test.want, got)
	}
	_, err := engine.MakeRate(1, 1<<62, 1e9)
	assert.Error(t, err)
}
