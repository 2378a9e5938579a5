package raftstore

import (
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/raftstore/wire"
)

const (
	// softNum and softDen are the share of the memory bound at which the leader begins
	// to forget, as in package engine.
	softNum, softDen = 7, 8
	// victimsPerOp is how many entries an entry forgets for each operation it holds:
	// more than it can add.
	victimsPerOp = 2
	// overdueVictims is how many an entry forgets at least once memory is over its
	// bound, as that of a new leader may be whose bound is the smallest: it lets no new
	// key in until it is not, so it has to be soon.
	overdueVictims = 512
)

// makeRoom adds to a batch the keys to forget when memory is nearly full. Memory is
// each node's own, so what is forgotten has to be in the log: the leader chooses,
// and everyone forgets the same.
func (n *Node) makeRoom(b *batch) {
	if n.denyWhenFull || b.kind != wire.Decide || !n.full(softNum, softDen) {
		return
	}
	wanted := victimsPerOp * b.ops
	if n.full(1, 1) {
		wanted = max(wanted, overdueVictims)
	}
	var ops []engine.Op
	at, _ := n.machine.last()
	n.machine.table.Load().Victims(at, wanted, func(key, id []byte) {
		ops = append(ops, engine.Op{Code: engine.OpForget, Key: key, ID: id, Cost: 1})
	})
	if len(ops) > 0 {
		b.append(ops, false)
	}
}

// forget makes room while this node leads and its memory is over its bound, until
// the node closes: what is refused meanwhile never gets into an entry that would.
func (n *Node) forget() {
	tick := time.NewTicker(housekeepEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-n.stop:
			return
		}
		for n.reign.Load() != nil && !n.denyWhenFull && n.full(1, 1) {
			b, err := n.queue.special(wire.Decide)
			if err != nil {
				break
			}
			if <-b.done; b.err != nil {
				break
			}
		}
	}
}

// full reports whether memory in use exceeds num/den of the bound. What forgotten
// entries left free is not in use; to ask for it takes every lock of the table, so
// that is done only when it matters.
func (n *Node) full(num, den int64) bool {
	if n.maxMemory == 0 {
		return false
	}
	table, bound := n.machine.table.Load(), n.maxMemory/den*num
	return table.MemoryBytes() >= bound && table.MemoryBytes()-table.FreeBytes() >= bound
}

// short reports whether there is no memory for new keys.
func (n *Node) short() bool {
	return n.full(1, 1) || n.denyWhenFull && n.full(softNum, softDen)
}

// refuse answers the operations that would take memory when there is none, and
// returns how many it answered. Only the leader's memory counts: what it lets into
// the log, everyone carries out.
func (n *Node) refuse(ops []engine.Op, out []engine.Decision, answered []bool) (refused int) {
	at, _ := n.machine.last()
	table := n.machine.table.Load()
	for i := range ops {
		if !answered[i] && grows(&ops[i], table, at) {
			out[i], answered[i] = engine.Decision{Status: engine.OutOfMemory}, true
			refused++
		}
	}
	return refused
}

// refuseAll is refuse for operations that are carried out together or not at all.
func (n *Node) refuseAll(ops []engine.Op, out []engine.Decision) bool {
	at, _ := n.machine.last()
	table := n.machine.table.Load()
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
	case op.Code == engine.OpBlock || op.Code == engine.OpBlockEverywhere || op.Code == engine.OpIncr || op.Code == engine.OpScript:
		return !table.Has(at, op.Key)
	case op.Code == engine.OpCheck:
		return !op.Dry && op.Cost > 0 && table.CheckGrows(at, op)
	case op.Code != engine.OpTake || op.Dry || op.Cost == 0:
		return false
	}
	a := op.Limit.Algorithm
	return a == engine.SlidingLog || a == engine.Concurrency || a == engine.Strike || !table.Has(at, op.Key)
}
