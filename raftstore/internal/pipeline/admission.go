package pipeline

import (
	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/raftstore/internal/budget"
)

// used returns the memory of this node's table. Above the soft level it leaves out the memory that compaction can
// free, and takes the lock of every shard for that.
func (p *Pipeline) used() int64 {
	table := p.FSM.Table.Load()
	if used := table.MemoryBytes(); p.Memory.Over(used, budget.Soft) < 0 {
		return used
	}
	return table.CompactBytes()
}

// full reports whether memory has reached the group's part of a level.
func (p *Pipeline) full(at budget.Level) bool {
	return p.MaxMemory > 0 && p.Memory.Over(p.FSM.Table.Load().MemoryBytes(), at) >= 0 &&
		p.Memory.Over(p.used(), at) >= 0
}

// poolExcess returns by how many bytes the memory that all groups share would exceed its bound if this group took some
// bytes more. Slots that this group has freed do not count.
func (p *Pipeline) poolExcess(more int64) int64 {
	table := p.FSM.Table.Load()
	if p.MaxMemory == 0 || p.Memory.PoolExcess(table.MemoryBytes()+more, budget.Full) == 0 {
		return 0
	}
	_, evicts := p.evictions.inFlight()
	return p.Memory.PoolExcess(table.CompactBytes()-evicts+more, budget.Full)
}

// memoryExhausted reports whether memory for new keys is used up, and eviction is disabled or has found nothing to
// evict.
func (p *Pipeline) memoryExhausted() bool {
	if p.DenyWhenFull {
		return p.full(budget.Soft)
	}
	return p.evictions.noVictims.Load() && (p.full(budget.Full) || p.poolExcess(0) > 0)
}

// refuseGrowth answers the operations that have no answer and would take memory with OutOfMemory, and returns their
// number. Only the leader's memory counts, because every node applies the entries that the leader admits. now is the
// time of denials: an operation that had no denial because it followed a refused one is denied here, unless one before
// it goes into the log.
func (p *Pipeline) refuseGrowth(now engine.Stamp, ops []engine.Op, out []engine.Decision, answered []bool) (n int) {
	at, _ := p.FSM.Last()
	table := p.FSM.Table.Load()
	refused, logged := false, false // whether an earlier operation is refused, or goes into the log
	for i := range ops {
		switch {
		case answered[i]:
		case !grows(&ops[i], table, at):
			logged = true
		case refused && !logged && table.Denials(now, ops[i:i+1], out[i:], answered[i:]) > 0:
			n++
		default:
			out[i], answered[i] = engine.Decision{Status: engine.OutOfMemory}, true
			refused = true
			n++
		}
	}
	return n
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
