package pipeline

import "github.com/weir-project/weir/engine"

// denyNum and denyDen are the share of the memory bound above which the leader denies operations that take memory,
// once nothing is left to evict. The memory above that share is a reserve for nodes whose tables are larger than the
// leader's table.
const denyNum, denyDen = 31, 32

// used returns the memory of this node's table. Above the soft level it leaves out the memory that compaction can
// free, and takes the lock of every shard for that.
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

// memoryExhausted reports whether memory for new keys is used up, and eviction is disabled or has found nothing to
// evict.
func (p *Pipeline) memoryExhausted() bool {
	if p.DenyWhenFull {
		return p.full(softNum, softDen)
	}
	return p.Evictions.hasNoVictims() && p.full(denyNum, denyDen)
}

// refuseGrowth answers the operations that have no answer and would take memory with OutOfMemory, and returns their
// number. Only the leader's memory counts, because every node applies the entries that the leader admits.
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

// refuseGrowthOfAll answers all operations of an atomic call with OutOfMemory if one of them would take memory.
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

// grows reports whether an operation may take memory: for a new entry, a remembered ID, or a longer log or set of
// leases.
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
