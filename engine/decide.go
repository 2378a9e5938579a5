package engine

import "slices"

// Decide carries out ops and fills out, which is at least as long. Each operation is atomic. Operations on one
// key run in order. Operations on different keys run in any order and may interleave with operations of other
// callers.
//
// Tables decide alike only if their stamps never go back. A shard replaces a stamp that goes back by the latest
// stamp that it has seen. That stamp depends on the number of shards.
func (t *Table) Decide(at Stamp, ops []Op, out []Decision) {
	var held lockCursor
	defer held.leave()
	for len(ops) > 0 {
		n := t.narrow(ops)
		switch n {
		case 0:
			n = 1
			held.leave()
			t.DecideAtomic(at, ops[:n], out[:n])
		case 1:
			h, s := t.find(ops[0].Key)
			held.enter(s)
			s.enter(at)
			if s.do(h, &ops[0], &out[0]); ops[0].Code >= OpCheck && len(s.told) > 0 {
				t.events.Append(s.takeTold(nil))
			}
		default:
			t.decideBatch(&held, at, ops[:n], out)
		}
		ops, out = ops[n:], out[n:]
	}
}

// narrow returns how many operations precede the first wide operation, at most the size of a shard batch.
func (t *Table) narrow(ops []Op) int {
	n := min(len(ops), batchOps)
	for i := range n {
		if t.wide(&ops[i]) {
			return i
		}
	}
	return n
}

// DecideAtomic carries out ops in order as one atomic step. No caller sees a state between them, and all of
// them happen at the same instant.
func (t *Table) DecideAtomic(at Stamp, ops []Op, out []Decision) {
	if t.memory.High() {
		t.reclaim(true)
	}
	var few [2 * MaxPairs]int
	involved := t.lock(ops, few[:0])
	defer t.unlock(involved)
	for _, i := range involved {
		at.NowNs = max(at.NowNs, t.shards[i].NowNs)
	}
	enter := (*shard).enter
	if changesOnly(ops) {
		enter = (*shard).arrive // policy changes look up no limiter
	}
	for _, i := range involved {
		enter(&t.shards[i], at)
		t.shards[i].MarkJoint()
	}
	if !t.rehearse(at, ops, out) {
		return
	}
	if len(ops) > 0 && ops[0].Code == OpFollow {
		if !t.begin(&ops[0], at.NowNs) {
			abandon(out[1:len(ops)])
			out[0] = Decision{Status: PolicyChanged}
			return
		}
		out[0] = Decision{}
		defer t.order.end(&ops[0], out[:len(ops)])
		ops, out = ops[1:], out[1:]
	}
	for i := range ops {
		if ops[i].Code == OpPolicy {
			t.changePolicy(at, &ops[i], &out[i])
			continue
		}
		if ops[i].Code == OpFlush {
			t.flush(&ops[i], &out[i])
			continue
		}
		h, s := t.find(ops[i].Key)
		s.enter(at)
		if s.do(h, &ops[i], &out[i]); ops[i].Code >= OpCheck {
			t.gather(involved)
		}
	}
}

// abandon answers the operations of a batch that is not carried out.
func abandon(out []Decision) {
	for i := range out {
		out[i] = Decision{Status: Abandoned}
	}
}

// wide reports whether an operation needs more than the shard of its key.
func (t *Table) wide(op *Op) bool {
	switch op.Code {
	case OpTake:
		return false // most operations
	case OpCheck, OpForgive:
		return len(op.Also) > 0
	}
	return op.Code == OpPolicy || op.Code >= OpReserve || t.changesEverywhere(op)
}

// involved lists the shards of operations in ascending order. All callers lock in that order, so they cannot
// deadlock.
func (t *Table) involved(ops []Op, list []int) []int {
	for i := range ops {
		if ops[i].Code == OpPolicy || ops[i].Code == OpFlush || t.changesEverywhere(&ops[i]) {
			return t.everyShard(list[:0])
		}
		list = append(list, t.shardNumber(ops[i].Key))
		switch {
		case ops[i].Code == OpReserve:
			list = append(list, t.shardNumber(ops[i].ID))
		case ops[i].ofHold():
			list = t.shardsOfHold(ops[i].Key, list)
		}
		for _, p := range ops[i].Also {
			list = append(list, t.shardNumber(p.Key))
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// decideBatch carries out up to batchOps operations that are not wide.
func (t *Table) decideBatch(held *lockCursor, at Stamp, ops []Op, out []Decision) {
	var r shardBatch
	var told batchEvents
	r.sort(t, ops)
	for _, i := range r.first {
		for ; i != noOp; i = r.next[i] {
			s := r.in[i]
			if held.enter(s) {
				r.prefetch(s, i, ops)
			}
			s.enter(at)
			s.do(r.hash[i], &ops[i], &out[i])
			told.add(s, int(i), &ops[i])
		}
	}
	told.write(t)
}
