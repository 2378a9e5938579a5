package raftstore

import "github.com/weir-project/weir/engine"

const (
	// softNum and softDen are the share of the memory bound at which the leader begins
	// to forget, as in package engine.
	softNum, softDen = 7, 8
	// victimsPerOp is how many entries an entry forgets for each operation it holds:
	// more than it can add.
	victimsPerOp = 2
)

// makeRoom adds to a batch the keys to forget when memory is nearly full. Memory is
// each node's own, so what is forgotten has to be in the log: the leader chooses,
// and everyone forgets the same.
func (n *Node) makeRoom(b *batch) {
	if !n.full(softNum, softDen) || n.denyWhenFull || b.ops == 0 {
		return
	}
	var ops []engine.Op
	at, _ := n.machine.last()
	n.machine.table.Load().Victims(at, victimsPerOp*b.ops, func(key, id []byte) {
		ops = append(ops, engine.Op{Code: engine.OpForget, Key: key, ID: id, Cost: 1})
	})
	if len(ops) > 0 {
		b.append(ops, false)
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
	case op.Code == engine.OpBlock || op.Code == engine.OpIncr || op.Code == engine.OpScript:
		return !table.Has(at, op.Key)
	case op.Code != engine.OpTake || op.Dry || op.Cost == 0:
		return false
	}
	a := op.Limit.Algorithm
	return a == engine.SlidingLog || a == engine.Concurrency || a == engine.Strike || !table.Has(at, op.Key)
}
