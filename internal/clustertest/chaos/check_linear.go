package chaos

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/weir-project/weir/internal/clustertest/ledger"
)

// These are the verdicts of package ledger.
var (
	ErrNotLinearizable = ledger.ErrNotLinearizable
	ErrUndecided       = ledger.ErrUndecided
)

// linearTimeout is many times the duration of a search in a history of this size on a busy machine.
const linearTimeout = 30 * time.Second

// Linearizable reports whether one counter with maxUnits that never refills could have given these replies. Each
// operation takes effect at one instant between its call and its return. An unknown operation takes effect at any
// instant after its call, or never.
func Linearizable(maxUnits int64, ops []Op) error {
	model := counterModel(maxUnits)
	ops = slices.SortedFunc(slices.Values(ops), func(a, b Op) int { return cmp.Compare(a.ReturnNs, b.ReturnNs) })
	result, _ := porcupine.CheckOperationsVerbose(model, porcupineOps(ops), linearTimeout)
	switch result {
	case porcupine.Ok:
		return nil
	case porcupine.Unknown:
		return fmt.Errorf("%w within %v: %d operations\n%s", ErrUndecided, linearTimeout, len(ops), show(ops))
	}
	bad := firstBad(model, ops)
	return fmt.Errorf("%w: no order explains the replies up to the last of these:\n%s",
		ErrNotLinearizable, show(ops[max(0, bad-maxShownOps):bad]))
}

// firstBad finds by bisection the shortest prefix of a history, by returns, that is not linearizable. A prefix of a
// linearizable history is linearizable if operations that have not returned in it count as unknown.
func firstBad(model porcupine.Model, ops []Op) int {
	good, bad := 0, len(ops)
	for bad-good > 1 {
		middle := (good + bad) / 2
		if porcupine.CheckOperationsTimeout(model, porcupineOps(until(ops, middle)),
			linearTimeout) == porcupine.Illegal {
			bad = middle
		} else {
			good = middle
		}
	}
	return bad
}

// until returns the history as known when its n-th operation returned. The operations are in the order of their
// returns.
func until(ops []Op, n int) []Op {
	known := append([]Op(nil), ops[:n]...)
	for _, op := range ops[n:] {
		if op.CallNs <= ops[n-1].ReturnNs {
			op.Outcome = Unknown
			known = append(known, op)
		}
	}
	return known
}

func porcupineOps(ops []Op) []porcupine.Operation {
	out := make([]porcupine.Operation, len(ops))
	for i, op := range ops {
		out[i] = porcupine.Operation{ClientId: op.Client, Input: op, Output: op, Call: op.CallNs,
			Return: op.deadlineNs()}
	}
	return out
}

// counterModel is the model of the counter. Its state is the number of used units.
func counterModel(maxUnits int64) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return int64(0) },
		Step: func(state, _, output any) (bool, any) {
			op := output.(Op)
			used, granted, left := step(maxUnits, state.(int64), &op)
			told := op.Outcome == Unknown || op.Left == left && op.Granted == granted
			return told, used
		},
		Hash:              func(state any) uint64 { return uint64(state.(int64)) },
		DescribeOperation: func(_, output any) string { return output.(Op).String() },
	}
}

// step returns the effect of one operation on a limit that never refills, and its answer.
func step(maxUnits, used int64, op *Op) (nowUsed, granted, left int64) {
	switch op.Verb {
	case Take:
		granted = op.Units
		if op.Partial {
			granted = min(granted, maxUnits-used)
		}
		if used+granted > maxUnits {
			granted = 0
		}
		return used + granted, granted, maxUnits - used - granted
	case Refund:
		if used == 0 {
			return 0, 0, -1 // an idle limiter does not exist, so no unit can be refunded
		}
		used = max(0, used-op.Units)
		return used, 0, maxUnits - used
	case Inspect:
		return used, 0, maxUnits - used
	case Exists:
		return used, 0, min(used, 1)
	default: // Reset
		return 0, 0, min(used, 1)
	}
}
