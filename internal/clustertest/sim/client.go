package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/clustertest/ledger"
)

const (
	// mostGroupsWithKeys bounds how the number of keys grows with the groups. The checks need many operations on a key.
	mostGroupsWithKeys = 4
	// think is the mean pause of a client between two calls.
	think = 30 * time.Millisecond
	// attempts bounds how often one ID is sent.
	attempts = 5
	// retryPause is the mean pause before an ID is sent again.
	retryPause = 60 * time.Millisecond
	// maxCall bounds the duration of any call, even on a failing node: the maximum age of a decision, and the time in
	// which watchdogs end a node that hangs.
	maxCall = 25 * time.Second
)

// client calls random nodes, one call at a time.
type client struct {
	sim    *Simulation
	number int
	rng    *rand.Rand
	ids    int
	mine   []*ledger.Trail // limits 'r' of which it has taken a unit
	own    own
}

// run works until the clients are stopped.
func (c *client) run() {
	for !c.sim.quiet.Load() {
		switch n := c.rng.IntN(100); {
		case c.sim.config.shared:
			c.share()
		case n < 30:
			c.keepBooks()
		case n < 65:
			c.pipeline()
		case n < 75:
			c.look()
		case n < 85:
			trail := c.trail(once)
			c.insist(on(trail, trail.Op(ledger.Take, 1+c.rng.Int64N(3))))
		case n < 94:
			c.takeOrReturn()
		default:
			c.takeOrClear()
		}
		c.pause(think)
	}
}

func (c *client) pause(mean time.Duration) {
	time.Sleep(time.Duration(c.rng.ExpFloat64() * float64(mean)))
}

// trail draws the history of a limit of a kind.
func (c *client) trail(kind byte) *ledger.Trail {
	rings := c.sim.limits[kind]
	if kind == cleared {
		return rings[c.number].Next() // no other client uses it
	}
	return rings[c.rng.IntN(len(rings))].Next()
}

// pipeline sends takes on one key or on a few.
func (c *client) pipeline() {
	n := 1
	if c.rng.IntN(3) == 0 {
		n += c.rng.IntN(4)
	}
	calls, atomic := make([]call, n), c.rng.IntN(8) == 0
	for i := range calls {
		trail := c.trail([]byte{refilling, refilling, counted, counted, tight, sliding}[c.rng.IntN(6)])
		if atomic && c.sim.groups() > 1 && i > 0 { // the keys of a transaction must have one slot
			trail = calls[0].trail
		}
		calls[i] = on(trail, trail.Op(ledger.Take, 1+c.rng.Int64N(2)))
	}
	c.send(calls, atomic)
}

// takeOrReturn takes a unit, or refunds a unit that it certainly has.
func (c *client) takeOrReturn() {
	if n := len(c.mine); n > 0 && c.rng.IntN(2) == 0 {
		trail := c.mine[n-1]
		c.mine = c.mine[:n-1]
		c.insist(on(trail, trail.Op(ledger.Refund, 1)))
		return
	}
	trail := c.trail(returned)
	if c.insist(on(trail, trail.Op(ledger.Take, 1))) == acked {
		c.mine = append(c.mine, trail)
	}
}

// takeOrClear uses a key that no other client uses.
func (c *client) takeOrClear() {
	trail, verb := c.trail(cleared), ledger.Take
	if c.rng.IntN(4) == 0 {
		verb = ledger.Reset
	}
	c.send([]call{on(trail, trail.Op(verb, 1))}, false)
}

// call is an operation of a client, and what the client knows of it.
type call struct {
	op      engine.Op
	trail   *ledger.Trail // nil: no history contains the operation
	entry   ledger.Op     // in the trail
	outcome outcome
}

// on returns an operation of a history.
func on(trail *ledger.Trail, op ledger.Op) call {
	return call{op: engineOp(op), trail: trail, entry: op}
}

// send calls some node, and adds the operations to their histories. Atomic operations go through the log, even if a
// denial would not need that.
func (c *client) send(calls []call, atomic bool) outcome {
	all := c.try(calls, atomic)
	for i := range calls {
		calls[i].record()
	}
	return all
}

func (c *call) record() {
	if c.trail == nil {
		return
	}
	if c.outcome != refused {
		c.trail.Add(c.entry)
	}
	c.trail.Ended(c.entry)
}

// insist sends an operation with an ID until it is answered, and sometimes once more. In its history it is one
// operation, which lasts from the first call to the first answer.
func (c *client) insist(one call) outcome {
	c.ids++
	one.op.ID = fmt.Appendf(nil, "%d-%d", c.number, c.ids)
	one.op.Bind()
	if c.sim.config.refundsWithoutID && one.op.Code == engine.OpRefund {
		one.op.ID = nil
	}
	calledNs := c.sim.elapsed().Nanoseconds()
	one.outcome = refused
	for range attempts {
		again := []call{one}
		switch o := c.try(again, false); {
		case one.outcome != acked && o != refused:
			one = again[0]
		case o == acked && one.trail != nil && again[0].entry.Answer != one.entry.Answer:
			c.sim.violation("%v was answered %+v when it was repeated", one.entry, again[0].entry.Answer)
		}
		if one.outcome == acked && c.rng.IntN(5) > 0 || c.sim.quiet.Load() {
			break
		}
		c.pause(retryPause)
	}
	one.entry.CallNs = calledNs
	one.record()
	return one.outcome
}

// try calls some node.
func (c *client) try(calls []call, atomic bool) outcome {
	ops := make([]engine.Op, len(calls))
	for i := range calls {
		ops[i], calls[i].outcome = calls[i].op, refused
	}
	p := c.sim.anyProcess(c.rng)
	if p == nil {
		return refused
	}
	called := c.sim.elapsed()
	out, err := p.ask(ops, atomic)
	back := c.sim.elapsed()
	if back-called > maxCall {
		c.sim.violation("a call took %v", back-called)
	}
	all := outcomeOf(err)
	for i := range calls {
		one := &calls[i]
		if one.outcome = all; err == nil {
			one.outcome = c.sim.outcomeOf(one.op, out[i].Status)
		}
		one.entry.Client, one.entry.CallNs, one.entry.ReturnNs = c.number, called.Nanoseconds(), back.Nanoseconds()
		if one.entry.Unknown = one.outcome == unknown; one.outcome == acked && one.trail != nil {
			one.entry.Answer = c.sim.answerOf(one.entry, out[i])
		}
		c.sim.report.tally(one.outcome)
		all = max(all, one.outcome)
	}
	return all
}

// errCrashed is the error of a call to a process that ended meanwhile.
var errCrashed = fmt.Errorf("the connection is gone")

// ask runs operations on a process while it lives.
func (p *process) ask(ops []engine.Op, atomic bool) ([]engine.Decision, error) {
	out := make([]engine.Decision, len(ops))
	err := p.do(func() error {
		if atomic {
			return p.node.DecideAtomic(ops, out)
		}
		return p.node.Decide(ops, out)
	})
	if err == errCrashed {
		return nil, err // the call may still write to out
	}
	return out, err
}

// do makes a call to a process while it lives.
func (p *process) do(call func() error) error {
	p.calls.Add(1)
	done := make(chan error, 1)
	go func() {
		defer p.calls.Add(-1)
		done <- call()
	}()
	select {
	case err := <-done:
		if p.over() {
			return errCrashed
		}
		return err
	case <-p.dead:
		return errCrashed
	}
}
