package engine

// await notes that an operation on policies has not been answered: those on its keys
// must come after it.
func (t *Table) await(waiting *keySet, op *Op) {
	for i := 0; ; i++ {
		pair, more := op.pair(i)
		if !more {
			return
		}
		waiting.add(t.hashKey(pair.Key))
	}
}

// awaited reports whether a check must come after an operation that has not been
// answered.
func (t *Table) awaited(waiting *keySet, op *Op) bool {
	for i := 0; ; i++ {
		pair, more := op.pair(i)
		if !more {
			return false
		}
		if waiting.has(t.hashKey(pair.Key)) {
			return true
		}
	}
}

// deniesCheck is the part of Denials that concerns a check.
func (t *Table) deniesCheck(at Stamp, op *Op, d *Decision, held *turn, waiting *keySet) bool {
	if !op.mayBeDenial() || t.awaited(waiting, op) {
		return false
	}
	h, s := t.find(op.Key)
	if !op.wide() {
		if held.enter(s) {
			s.look(at)
		}
		return s.checkDenied(h, op, d)
	}
	held.leave()
	var few [2 * MaxPairs]int
	involved := t.involved([]Op{*op}, few[:0])
	defer func() {
		for _, i := range involved {
			t.shards[i].unlock()
		}
	}()
	for _, i := range involved {
		t.shards[i].mu.Lock()
		at.NowNs = max(at.NowNs, t.shards[i].NowNs)
	}
	for _, i := range involved {
		t.shards[i].look(at)
	}
	return s.checkDenied(h, op, d)
}

// checkDenied answers a check, of which the shards are looked at, if it is denied
// and leaves no trace.
func (s *shard) checkDenied(h uint64, op *Op, d *Decision) bool {
	k := &s.checker
	*d = Decision{}
	if !k.resolve(s, h, op, d) {
		return d.Status == OK // the key is blocked
	}
	if _, fits := k.look(op); fits {
		return false
	}
	for i := range k.parts {
		x := &k.parts[i]
		if !x.fits && (x.extends() || x.s.adopts(&x.c, &x.op, &x.d) || x.s.forgets(&x.c)) {
			return false
		}
	}
	k.deny(op, d)
	return true
}

// CheckGrows reports whether a check may take memory: for the limiter of one of its
// limits that is idle now, or for a log that becomes longer.
func (t *Table) CheckGrows(at Stamp, op *Op) bool {
	set := t.policies.Load()
	for i := 0; ; i++ {
		pair, more := op.pair(i)
		if !more {
			return false
		}
		p := set.Get(pair.Policy)
		if p == nil || p.Disabled {
			continue
		}
		limits := p.limitsFor(pair.Key, at.NowNs)
		for k := range limits {
			name := append([]byte(p.prefixes[k]), pair.Key...)
			if a := limits[k].Limit.Algorithm; a == SlidingLog || a == Strike || !t.Has(at, name) {
				return true
			}
		}
	}
}
