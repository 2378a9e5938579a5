package engine

// Explain answers operations that are all Dry as Decide would, each by itself. The stamp may
// be later than the last decision's. Explain leaves no trace; see look.
func (t *Table) Explain(at Stamp, ops []Op, out []Decision) {
	var few [2 * MaxPairs]int
	for i := range ops {
		t.explain(at, &ops[i], &out[i], t.lock(ops[i:i+1], few[:0]))
	}
}

// explain answers an operation whose shards are locked, and unlocks them.
func (t *Table) explain(at Stamp, op *Op, d *Decision, involved []int) {
	defer func() {
		for _, i := range involved {
			t.shards[i].unlock()
		}
	}()
	for _, i := range involved { // one instant for all, as in DecideAtomic
		at.NowNs = max(at.NowNs, t.shards[i].NowNs)
	}
	for _, i := range involved {
		t.shards[i].look(at)
	}
	h, s := t.find(op.Key)
	s.do(h, op, d)
}
