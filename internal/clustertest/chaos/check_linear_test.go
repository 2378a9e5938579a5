package chaos

import (
	"testing"
)

func TestLinearizable(t *testing.T) {
	denied := func(callMs, returnMs, units, remaining int64) Op {
		return Op{Verb: Take, Units: units, Left: remaining, CallNs: callMs * ms, ReturnNs: returnMs * ms}
	}
	at := func(op Op, callMs, returnMs int64) Op {
		op.CallNs, op.ReturnNs = callMs*ms, returnMs*ms
		return op
	}
	partial := left(grant(2, 3, 2), 0)
	partial.Partial, partial.Units = true, 5
	for name, c := range map[string]struct {
		ops []Op
		bad bool
	}{
		"in order":                     {ops: []Op{left(grant(0, 1, 4), 6), left(grant(2, 3, 4), 2)}},
		"overlapping, other way round": {ops: []Op{left(grant(0, 5, 4), 2), left(grant(1, 6, 4), 6)}},
		"not overlapping, other way":   {ops: []Op{left(grant(0, 1, 4), 2), left(grant(2, 3, 4), 6)}, bad: true},
		"a denial that is right":       {ops: []Op{left(grant(0, 1, 8), 2), denied(2, 3, 4, 2)}},
		"a denial that is wrong":       {ops: []Op{left(grant(0, 1, 2), 8), denied(2, 3, 4, 8)}, bad: true},
		"stale":                        {ops: []Op{left(grant(0, 1, 8), 2), denied(2, 3, 0, 10)}, bad: true},
		"forgotten":                    {ops: []Op{left(grant(0, 1, 8), 2), left(grant(2, 3, 8), 2)}, bad: true},
		"unknown, applied":             {ops: []Op{unknown(grant(0, 1, 4)), left(grant(2, 3, 1), 5)}},
		"unknown, not applied":         {ops: []Op{unknown(grant(0, 1, 4)), left(grant(2, 3, 1), 9)}},
		"unknown, applied late": {ops: []Op{unknown(grant(0, 1, 4)), left(grant(2, 3, 1), 9),
			left(grant(4, 5, 1), 4)}},
		"unknown, applied twice": {ops: []Op{unknown(grant(0, 1, 4)), left(grant(2, 3, 1), 1)}, bad: true},
		"reads": {ops: []Op{left(grant(0, 1, 8), 2), at(Op{Verb: Inspect, Left: 2}, 2, 3),
			at(Op{Verb: Exists, Left: 1}, 2, 3)}},
		"reads of what is idle": {ops: []Op{at(Op{Verb: Inspect, Left: 10}, 0, 1), at(Op{Verb: Exists}, 0, 1),
			left(grant(2, 3, 8), 2)}},
		"a read beside a grant": {ops: []Op{left(grant(0, 3, 8), 2), at(Op{Verb: Inspect, Left: 10}, 1, 2)}},
		"a read from the past": {ops: []Op{left(grant(0, 1, 8), 2), at(Op{Verb: Inspect, Left: 10}, 2, 3)},
			bad: true},
		"a read of a key from the past": {ops: []Op{left(grant(0, 1, 8), 2), at(Op{Verb: Exists}, 2, 3)}, bad: true},
		"a read that goes back": {ops: []Op{left(grant(0, 5, 8), 2), at(Op{Verb: Inspect, Left: 2}, 1, 2),
			at(Op{Verb: Inspect, Left: 10}, 3, 4)}, bad: true},
		"partial": {ops: []Op{left(grant(0, 1, 8), 2), partial}},
		"refund": {ops: []Op{left(grant(0, 1, 8), 2),
			at(Op{Verb: Refund, Units: 3, Left: 5}, 2, 3)}},
		"refund counted twice": {ops: []Op{left(grant(0, 1, 8), 2),
			at(Op{Verb: Refund, Units: 3, Left: 5}, 2, 3), denied(4, 5, 0, 8)}, bad: true},
		"refund to an idle limiter": {ops: []Op{at(Op{Verb: Refund, Units: 3, Left: -1}, 2, 3),
			denied(4, 5, 0, 10)}},
		"reset": {ops: []Op{left(grant(0, 1, 8), 2), at(Op{Verb: Reset, Left: 1}, 2, 3),
			left(grant(4, 5, 8), 2)}},
		"reset undone": {ops: []Op{left(grant(0, 1, 2), 8), at(Op{Verb: Reset, Left: 1}, 2, 3),
			denied(4, 5, 0, 8)}, bad: true},
		"reset of nothing that does some": {ops: []Op{at(Op{Verb: Reset, Left: 1}, 2, 3)}, bad: true},
	} {
		t.Run(name, func(t *testing.T) {
			requireErr(t, c.bad, ErrNotLinearizable, Linearizable(10, c.ops))
		})
	}
}
