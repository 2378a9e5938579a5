package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/weir-project/weir/engine"
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
	mine   []string // keys 'r' of which it has taken a unit
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
			c.insist(c.op(c.key(once, 2), engine.OpTake, 1+c.rng.Int64N(3)))
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

// key draws one of the keys of a kind: n, or more in a cluster with several groups.
func (c *client) key(kind byte, n int) string {
	return fmt.Sprintf("%c%d", kind, c.rng.IntN(n*min(c.sim.groups(), mostGroupsWithKeys)))
}

func (c *client) op(key string, code engine.OpCode, cost int64) engine.Op {
	return engine.Op{Code: code, Key: []byte(key), Limit: limitOf(key), Cost: cost}
}

// pipeline sends takes on one key or on a few.
func (c *client) pipeline() {
	n := 1
	if c.rng.IntN(3) == 0 {
		n += c.rng.IntN(4)
	}
	ops := make([]engine.Op, n)
	for i := range ops {
		kind := []byte{refilling, refilling, counted, counted, tight, sliding}[c.rng.IntN(6)]
		ops[i] = c.op(c.key(kind, 3), engine.OpTake, 1+c.rng.Int64N(2))
	}
	atomic := c.rng.IntN(8) == 0
	for i := range ops {
		if atomic && c.sim.groups() > 1 { // the keys of a transaction must have one slot
			ops[i].Key, ops[i].Limit = ops[0].Key, ops[0].Limit
		}
	}
	c.send(ops, atomic)
}

// insist sends an operation with an ID until it is answered, and sometimes once more.
func (c *client) insist(op engine.Op) outcome {
	c.ids++
	op.ID = fmt.Appendf(nil, "%d-%d", c.number, c.ids)
	op.Bind()
	sent := op
	if c.sim.config.refundsWithoutID && op.Code == engine.OpRefund {
		sent.ID = nil
	}
	last := unknown
	for range attempts {
		last = min(last, c.sendAs([]engine.Op{op}, []engine.Op{sent}, false))
		if last == acked && c.rng.IntN(5) > 0 || c.sim.quiet.Load() {
			break
		}
		c.pause(retryPause)
	}
	return last
}

// takeOrReturn takes a unit, or refunds a unit that it certainly has.
func (c *client) takeOrReturn() {
	if len(c.mine) > 0 && c.rng.IntN(2) == 0 {
		key := c.mine[len(c.mine)-1]
		c.mine = c.mine[:len(c.mine)-1]
		c.insist(c.op(key, engine.OpRefund, 1))
		return
	}
	key := c.key(returned, 2)
	if c.insist(c.op(key, engine.OpTake, 1)) == acked {
		c.mine = append(c.mine, key)
	}
}

// takeOrClear uses a key that no other client uses.
func (c *client) takeOrClear() {
	key := fmt.Sprintf("%c%d", cleared, c.number)
	code := engine.OpTake
	if c.rng.IntN(4) == 0 {
		code = engine.OpReset
	}
	c.send([]engine.Op{c.op(key, code, 1)}, false)
}

// send calls some node and records the outcome.
func (c *client) send(ops []engine.Op, atomic bool) outcome { return c.sendAs(ops, ops, atomic) }

// sendAs records the outcome of operations that may have been sent with a mistake.
func (c *client) sendAs(ops, sent []engine.Op, atomic bool) outcome {
	p := c.sim.anyProcess(c.rng)
	if p == nil {
		return refused
	}
	called := c.sim.elapsed()
	out, err := p.ask(sent, atomic)
	back := c.sim.elapsed()
	if back-called > maxCall {
		c.sim.violation("a call took %v", back-called)
	}
	rs, all := make([]record, len(ops)), outcomeOf(err)
	for i, op := range ops {
		o := all
		if err == nil {
			o = c.sim.outcomeOf(op, out[i].Status)
		}
		rs[i] = record{op: op, key: string(op.Key), id: string(op.ID), called: called, back: back, outcome: o}
		if o == acked {
			rs[i].answer = out[i]
		}
		all = max(all, o)
	}
	c.sim.history.add(rs)
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
