package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/clustertest/ledger"
)

// take returns the record of an answered take of units, whose answer reports used units.
func take(from, to time.Duration, units, used int64) record {
	return record{
		op:  engine.Op{Code: engine.OpTake, Cost: units},
		key: "n0", called: from, back: to,
		answer: engine.Decision{Allowed: 1, Limit: 100, Remaining: 100 - used},
	}
}

func (r record) with(id string, o outcome) record {
	r.id, r.outcome = id, o
	return r
}

func (r record) code(c engine.OpCode) record {
	r.op.Code = c
	return r
}

func denied(at time.Duration) record {
	r := take(at, at, 1, 100)
	r.answer.Allowed = 0
	return r
}

const second = time.Second

// TestClocksAtTheLimitOfTheirDrift checks the bound for a clock that is as fast as it may be, and one unit beyond.
func TestClocksAtTheLimitOfTheirDrift(t *testing.T) {
	over := func(records ...record) error { return ledger.OverAdmittedBucket(10, 20, drift, grantsOf(records)) }
	require.NoError(t, over(take(0, 10000*second, 10+200_000+40, 0)))
	require.Error(t, over(take(0, 10000*second, 10+200_000+41, 0)))
	require.NoError(t, over(take(0, 1, 10, 0), take(0, 1, 10, 0).with("", unknown), denied(1)), "nobody knows of these")
}

func TestCheckCount(t *testing.T) {
	records := []record{
		take(0, 1, 5, 5),
		take(1, 2, 3, 0).with("", unknown),
		take(2, 3, 7, 0).with("", refused),
		take(3, 4, 2, 0).with("a", unknown), take(5, 6, 2, 7).with("a", acked), take(7, 8, 2, 7).with("a", acked),
		take(8, 9, 1, 0).with("b", acked).code(engine.OpRefund),
		denied(9),
	}
	for used := int64(0); used < 20; used++ {
		require.Equal(t, used < 6 || used > 9, len(checkCount("n0", records, used)) > 0, "%d units", used)
	}
}

func TestCheckOrder(t *testing.T) {
	for name, c := range map[string]struct {
		records []record
		wrong   bool
	}{
		"one after the other": {[]record{take(0, 1, 1, 1), take(2, 3, 2, 3)}, false},
		"at the same time":    {[]record{take(0, 5, 1, 3), take(1, 4, 2, 2)}, false},
		"a unit twice":        {[]record{take(0, 1, 1, 1), take(2, 3, 1, 1)}, true},
		"overlapping units":   {[]record{take(0, 1, 2, 2), take(2, 3, 2, 3)}, true},
		"against real time":   {[]record{take(0, 1, 1, 2), take(2, 3, 1, 1)}, true},
		"an ID sent again": {[]record{take(0, 1, 1, 1).with("a", acked), take(2, 3, 1, 1).with("a", acked)},
			false},
		"an ID that came through": {[]record{take(0, 1, 1, 0).with("a", unknown), take(2, 3, 1, 2),
			take(4, 5, 1, 1).with("a", acked)}, false},
	} {
		require.Equal(t, c.wrong, len(checkOrder(c.records)) > 0, name)
	}
}

func TestCheckSameAnswer(t *testing.T) {
	same := []record{take(0, 1, 1, 1).with("a", acked), take(2, 3, 1, 1).with("a", acked)}
	require.Empty(t, checkSameAnswer(same))
	require.NotEmpty(t, checkSameAnswer(append(same, take(4, 5, 1, 2).with("a", acked))))
}

func TestCheckDenials(t *testing.T) {
	require.NotEmpty(t, checkDenials([]record{take(0, 1, 99, 99), denied(2)}))
	require.Empty(t, checkDenials([]record{take(0, 1, 99, 99), take(0, 1, 1, 0).with("", unknown), denied(2)}))
}

func TestCheckCleared(t *testing.T) {
	reset := take(2, 3, 0, 0).code(engine.OpReset)
	for name, c := range map[string]struct {
		records []record
		used    int64
		wrong   bool
	}{
		"counted from the reset on":  {[]record{take(0, 1, 5, 5), reset, take(4, 5, 1, 1)}, 1, false},
		"a reset that did nothing":   {[]record{take(0, 1, 5, 5), reset, take(4, 5, 1, 6)}, 6, true},
		"a reset that may have been": {[]record{take(0, 1, 5, 5), reset.with("", unknown), take(4, 5, 1, 6)}, 6, false},
		"a take that came late":      {[]record{take(0, 1, 5, 0).with("", unknown), reset, take(4, 5, 1, 6)}, 6, false},
		"a take that was lost":       {[]record{reset, take(4, 5, 1, 1)}, 0, true},
		"a take refused and counted": {[]record{reset, take(4, 5, 1, 1).with("", refused)}, 1, true},
	} {
		require.Equal(t, c.wrong, len(checkCleared("z0", c.records, c.used)) > 0, name)
	}
}

func TestCheckReads(t *testing.T) {
	records := []record{take(0, 1, 5, 5), take(2, 3, 3, 8), take(4, 5, 2, 0).with("", unknown),
		take(6, 7, 1, 0).with("", refused)}
	linear := func(called, back time.Duration, used int64) read { return read{called: called, back: back, used: used} }
	stale := func(called, age time.Duration, used int64) read {
		return read{called: called, back: called, used: used, stale: true, age: age}
	}
	for name, c := range map[string]struct {
		reads []read
		wrong bool
	}{
		"in order":                     {[]read{linear(1, 2, 5), linear(3, 4, 8), linear(8, 9, 8)}, false},
		"what is not known":            {[]read{linear(8, 9, 10)}, false},
		"beside a take":                {[]read{linear(2, 3, 5), linear(2, 3, 8)}, false},
		"the past":                     {[]read{linear(4, 5, 5)}, true},
		"what nobody took":             {[]read{linear(8, 9, 11)}, true},
		"back":                         {[]read{linear(6, 7, 10), linear(8, 9, 8)}, true},
		"as old as it says":            {[]read{stale(8, 6, 5), stale(8, 8, 0), stale(8, 4, 8)}, false},
		"older than it says":           {[]read{stale(8, 4, 5)}, true},
		"older than one that is newer": {[]read{linear(8, 9, 8), stale(10, 8, 5)}, false},
	} {
		require.Equal(t, c.wrong, len(checkReads("n0", records, c.reads)) > 0, name)
	}
}
