package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

var (
	// ErrNotLinearizable reports that no order of the operations explains the answers.
	ErrNotLinearizable = errors.New("not linearizable")
	// ErrUndecided reports that the search took too long. This is a failure, because an undecided history proves
	// nothing.
	ErrUndecided = errors.New("linearizability undecided")
)

// searchTimeout is many times what a history of some hundred operations with eight
// unknown ones takes on a busy machine.
const searchTimeout = 30 * time.Second

// excerptTimeout bounds each step of the search for the part of a wrong history to show.
const excerptTimeout = 3 * time.Second

// Linearizable looks for an order that explains all answers. Each operation takes effect at one instant between its
// call and its return. The history begins without policies, usage and holds.
func Linearizable(ops []Op) error {
	ops = slices.SortedFunc(slices.Values(ops), func(a, b Op) int { return cmp.Compare(a.ReturnNs, b.ReturnNs) })
	switch search(ops, searchTimeout) {
	case porcupine.Ok:
		return nil
	case porcupine.Unknown:
		return fmt.Errorf("%w within %v: %d operations\n%s", ErrUndecided, searchTimeout, len(ops), Show(ops))
	}
	return fmt.Errorf("%w: no order explains the answers up to the last of these:\n%s", ErrNotLinearizable,
		Show(ops[:firstBad(ops)]))
}

func search(ops []Op, timeout time.Duration) porcupine.CheckResult {
	list, first := entries(ops)
	history := make([]porcupine.Operation, len(list))
	for i, e := range list {
		history[i] = porcupine.Operation{ClientId: e.op.Client, Input: e, Call: e.op.CallNs, Return: e.op.deadlineNs()}
	}
	return porcupine.CheckOperationsTimeout(porcupine.Model{
		Init: func() any { return first },
		Step: func(state, input, _ any) (bool, any) {
			told, next := state.(*book).step(input.(*entry))
			return told, next
		},
		Equal: func(a, b any) bool { return a.(*book).equal(b.(*book)) },
		Hash:  func(state any) uint64 { return state.(*book).hash() },
	}, history, timeout)
}

// firstBad finds by bisection the shortest prefix by returns that is not linearizable. A prefix of a linearizable
// history is linearizable if operations that have not returned in it count as unknown.
func firstBad(ops []Op) int {
	good, bad := 0, len(ops)
	for bad-good > 1 {
		middle := (good + bad) / 2
		if search(until(ops, middle), excerptTimeout) == porcupine.Illegal {
			bad = middle
		} else {
			good = middle
		}
	}
	return bad
}

// until returns the history as known when its n-th operation, by returns, returned.
func until(ops []Op, n int) []Op {
	known := slices.Clone(ops[:n])
	for _, op := range ops[n:] {
		if op.CallNs <= ops[n-1].ReturnNs {
			op.Unknown = true
			known = append(known, op)
		}
	}
	return known
}
