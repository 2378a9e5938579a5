package sim

import "github.com/weir-project/weir/internal/clustertest/ledger"

// look reads a counted key at some node: the committed state after a ReadIndex round, or the node's own state
// (stale).
func (c *client) look() {
	p := c.sim.anyProcess(c.rng)
	if p == nil {
		return
	}
	trail := c.trail([]byte{counted, tight}[c.rng.IntN(2)])
	op, stale := trail.Op(ledger.Inspect, 0), c.rng.IntN(3) == 0
	read := ledger.StaleRead{At: p.host.id, CallNs: c.sim.elapsed().Nanoseconds()}
	err := p.do(func() (err error) {
		if stale {
			read.Age = p.node.StaleFor() // taken before the read, so the state that is read is not older
		} else if err = p.node.ReadIndex(); err != nil {
			return err
		}
		info, _ := p.node.Inspect([]byte(trail.Name))
		read.Used = info.Used
		return nil
	})
	read.ReturnNs = c.sim.elapsed().Nanoseconds()
	if took := read.ReturnNs - read.CallNs; took > maxCall.Nanoseconds() {
		c.sim.violation("a read took %d ns", took)
	}
	if err != nil {
		return
	}
	c.sim.report.read(stale)
	if stale {
		trail.AddStale(read)
		return
	}
	op.Client, op.At, op.CallNs, op.ReturnNs = c.number, read.At, read.CallNs, read.ReturnNs
	op.Answer.Left = trail.Max - read.Used
	trail.Add(op)
}
