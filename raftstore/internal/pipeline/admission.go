package pipeline

import "github.com/weir-project/weir/engine"

// firmNum and firmDen are the share of the bound from which on nothing is let in that takes
// memory, once there is nothing to evict. The rest is for nodes whose tables take more than the
// leader's.
const firmNum, firmDen = 31, 32

// used is what this node's table takes, without what compaction can give back. It asks for the
// lock of every shard only where that matters.
func (p *Pipeline) used() int64 {
	table := p.FSM.Table.Load()
	if used := table.MemoryBytes(); used < p.MaxMemory/softDen*softNum {
		return used
	}
	return table.CompactBytes()
}

// full reports whether memory has reached num/den of the bound.
func (p *Pipeline) full(num, den int64) bool {
	if p.MaxMemory == 0 {
		return false
	}
	bound := p.MaxMemory / den * num
	return p.FSM.Table.Load().MemoryBytes() >= bound && p.used() >= bound
}

// memoryExhausted reports whether there is no memory for new keys, and eviction can give none.
func (p *Pipeline) memoryExhausted() bool {
	if p.DenyWhenFull {
		return p.full(softNum, softDen)
	}
	return p.Evictions.isFirm() && p.full(firmNum, firmDen)
}

// refuseGrowth answers the operations that would take memory when there is none, and
// returns how many it answered. Only the leader's memory counts: what it lets into
// the log, everyone carries out.
func (p *Pipeline) refuseGrowth(ops []engine.Op, out []engine.Decision, answered []bool) (refused int) {
	at, _ := p.FSM.Last()
	table := p.FSM.Table.Load()
	for i := range ops {
		if !answered[i] && grows(&ops[i], table, at) {
			out[i], answered[i] = engine.Decision{Status: engine.OutOfMemory}, true
			refused++
		}
	}
	return refused
}

// refuseGrowthOfAll is refuse for operations that are carried out together or not at all.
func (p *Pipeline) refuseGrowthOfAll(ops []engine.Op, out []engine.Decision) bool {
	at, _ := p.FSM.Last()
	table := p.FSM.Table.Load()
	for i := range ops {
		if grows(&ops[i], table, at) {
			for k := range ops {
				out[k] = engine.Decision{Status: engine.OutOfMemory}
			}
			return true
		}
	}
	return false
}

// grows reports whether an operation may take memory: for a new entry, an id to be
// remembered, or a log or a set of leases that becomes longer.
func grows(op *engine.Op, table *engine.Table, at engine.Stamp) bool {
	switch {
	case len(op.ID) > 0:
		return true
	case op.Code == engine.OpScript && op.Script.ID.TextsOf() > 0:
		return table.ValueGrows(at, op)
	case op.Code == engine.OpBlock || op.Code == engine.OpBlockEverywhere || op.Code == engine.OpIncr:
		return !table.Has(at, op.Key)
	case op.Code == engine.OpScript:
		return op.Script.Grows() || !table.Has(at, op.Key)
	case op.Code == engine.OpCheck:
		return !op.Dry && op.Cost > 0 && table.CheckGrows(at, op)
	case op.Code != engine.OpTake || op.Dry || op.Cost == 0:
		return false
	}
	a := op.Limit.Algorithm
	return a == engine.SlidingLog || a == engine.Concurrency || a == engine.Strike || !table.Has(at, op.Key)
}
