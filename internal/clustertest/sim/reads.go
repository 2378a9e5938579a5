package sim

import (
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/clustertest/ledger"
	"github.com/weir-project/weir/limiter"
)

// look reads a counted key at some node, as the server does: the committed state after a ReadIndex round, or the node's
// own state (stale). A node without the group of the key asks another node.
func (c *client) look() {
	p := c.sim.anyProcess(c.rng)
	if p == nil {
		return
	}
	trail := c.trail([]byte{counted, tight}[c.rng.IntN(2)])
	op, stale := trail.Op(ledger.Inspect, 0), c.rng.IntN(3) == 0
	read := ledger.StaleRead{At: p.host.id, CallNs: c.sim.elapsed().Nanoseconds()}
	var used int64
	var age time.Duration
	err := p.do(func() (err error) {
		used, age, err = p.inspect(trail.Name, stale)
		return err
	})
	read.ReturnNs = c.sim.elapsed().Nanoseconds()
	if took := read.ReturnNs - read.CallNs; took > maxCall.Nanoseconds() {
		c.sim.violation("a read took %d ns", took)
	}
	if err != nil {
		return
	}
	read.Used, read.Age = used, age
	c.sim.report.read(stale)
	if stale {
		trail.AddStale(read)
		return
	}
	op.Client, op.At, op.CallNs, op.ReturnNs = c.number, read.At, read.CallNs, read.ReturnNs
	op.Answer.Left = trail.Max - read.Used
	trail.Add(op)
}

// inspect reads how many units of a key are in use, and the age of the state that it reads.
func (p *process) inspect(key string, stale bool) (used int64, age time.Duration, err error) {
	r := limiter.NewReader(p.node)
	r.Stale = stale
	ofKey := func(t *limiter.Topology) ([]int, bool) { return []int{t.NumberOf(engine.SlotOf([]byte(key)))}, false }
	err = r.Read(ofKey, func(v limiter.View, at time.Duration) {
		info, _ := v.Inspect([]byte(key))
		used, age = info.Used, at
	})
	return used, age, err
}
