package ledger

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const ms = int64(time.Millisecond)

// count returns an operation on one counter of ten units, with its call and return in milliseconds and its answer.
func count(verb Verb, callMs, returnMs, units, left int64) Op {
	op := (&Trail{Name: "k", Max: 10}).Op(verb, units)
	op.CallNs, op.ReturnNs, op.Answer.Left = callMs*ms, returnMs*ms, left
	return op
}

// grant is an answered take of units.
func grant(callMs, returnMs, units, left int64) Op {
	op := count(Take, callMs, returnMs, units, left)
	op.Answer.Allowed = units
	return op
}

func requireErr(t *testing.T, want, got error) {
	t.Helper()
	if want == nil {
		require.NoError(t, got)
		return
	}
	require.ErrorIs(t, got, want)
}

func TestCounterIsLinearizable(t *testing.T) {
	denied := func(callMs, returnMs, units, left int64) Op { return count(Take, callMs, returnMs, units, left) }
	partial := grant(2, 3, 2, 0)
	partial.Partial, partial.Units = true, 5
	for name, c := range map[string]struct {
		ops []Op
		bad bool
	}{
		"in order":                     {ops: []Op{grant(0, 1, 4, 6), grant(2, 3, 4, 2)}},
		"overlapping, other way round": {ops: []Op{grant(0, 5, 4, 2), grant(1, 6, 4, 6)}},
		"not overlapping, other way":   {ops: []Op{grant(0, 1, 4, 2), grant(2, 3, 4, 6)}, bad: true},
		"a denial that is right":       {ops: []Op{grant(0, 1, 8, 2), denied(2, 3, 4, 2)}},
		"a denial that is wrong":       {ops: []Op{grant(0, 1, 2, 8), denied(2, 3, 4, 8)}, bad: true},
		"stale":                        {ops: []Op{grant(0, 1, 8, 2), denied(2, 3, 0, 10)}, bad: true},
		"forgotten":                    {ops: []Op{grant(0, 1, 8, 2), grant(2, 3, 8, 2)}, bad: true},
		"unknown, applied":             {ops: []Op{grant(0, 1, 4, 0).unheard(), grant(2, 3, 1, 5)}},
		"unknown, not applied":         {ops: []Op{grant(0, 1, 4, 0).unheard(), grant(2, 3, 1, 9)}},
		"unknown, applied late": {ops: []Op{grant(0, 1, 4, 0).unheard(), grant(2, 3, 1, 9),
			grant(4, 5, 1, 4)}},
		"unknown, applied twice": {ops: []Op{grant(0, 1, 4, 0).unheard(), grant(2, 3, 1, 1)}, bad: true},
		"reads": {ops: []Op{grant(0, 1, 8, 2), count(Inspect, 2, 3, 0, 2),
			count(Exists, 2, 3, 0, 1)}},
		"reads of what is idle": {ops: []Op{count(Inspect, 0, 1, 0, 10), count(Exists, 0, 1, 0, 0),
			grant(2, 3, 8, 2)}},
		"a read beside a grant": {ops: []Op{grant(0, 3, 8, 2), count(Inspect, 1, 2, 0, 10)}},
		"a read from the past": {ops: []Op{grant(0, 1, 8, 2), count(Inspect, 2, 3, 0, 10)},
			bad: true},
		"a read of a key from the past": {ops: []Op{grant(0, 1, 8, 2), count(Exists, 2, 3, 0, 0)}, bad: true},
		"a read that goes back": {ops: []Op{grant(0, 5, 8, 2), count(Inspect, 1, 2, 0, 2),
			count(Inspect, 3, 4, 0, 10)}, bad: true},
		"counted once for an ID that was sent twice": {ops: []Op{grant(0, 9, 3, 7), count(Inspect, 10, 11, 0, 4)}, bad: true},
		"not applied, and counted":                   {ops: []Op{grant(0, 1, 5, 5), count(Inspect, 10, 11, 0, 3)}, bad: true},
		"partial":                                    {ops: []Op{grant(0, 1, 8, 2), partial}},
		"refund": {ops: []Op{grant(0, 1, 8, 2),
			count(Refund, 2, 3, 3, 5)}},
		"refund counted twice": {ops: []Op{grant(0, 1, 8, 2),
			count(Refund, 2, 3, 3, 5), denied(4, 5, 0, 8)}, bad: true},
		"refund to an idle limiter": {ops: []Op{count(Refund, 2, 3, 3, -1),
			denied(4, 5, 0, 10)}},
		"reset": {ops: []Op{grant(0, 1, 8, 2), count(Reset, 2, 3, 0, 1),
			grant(4, 5, 8, 2)}},
		"a reset that may have been":      {ops: []Op{grant(0, 1, 5, 5), count(Reset, 2, 3, 0, 0).unheard(), grant(4, 5, 1, 4)}},
		"a take that comes after a reset": {ops: []Op{grant(0, 1, 5, 0).unheard(), count(Reset, 2, 3, 0, 0), grant(4, 5, 1, 4)}},
		"a take that the reset forgot": {ops: []Op{grant(0, 1, 5, 0).unheard(), count(Reset, 2, 3, 0, 1), grant(4, 5, 1, 4)},
			bad: true},
		"reset undone": {ops: []Op{grant(0, 1, 2, 8), count(Reset, 2, 3, 0, 1),
			denied(4, 5, 0, 8)}, bad: true},
		"reset of nothing that does some": {ops: []Op{count(Reset, 2, 3, 0, 1)}, bad: true},
	} {
		t.Run(name, func(t *testing.T) {
			var want error
			if c.bad {
				want = ErrNotLinearizable
			}
			requireErr(t, want, Linearizable(c.ops))
		})
	}
}
