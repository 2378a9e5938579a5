package engine

import "slices"

// reserve carries out an OpReserve: a check whose take can be settled. A denial leaves
// nothing behind, so the id may be used again.
func (s *shard) reserve(h uint64, op *Op, d *Decision) bool {
	if op.Dry {
		return s.check(h, op, d)
	}
	home, c := s.t.openHold(op.ID)
	if c.live {
		if x := readHold(c.e.state()); x.same(op) {
			*d = x.answer
		} else {
			d.Status = OtherTerms
		}
		return false
	}
	k := &s.checker
	if !k.resolve(s, h, op, d) {
		return false
	}
	if _, fits := k.look(op); !fits {
		k.deny(op, d)
		return false
	}
	if k.crowded() {
		d.Status = TooManyHolders
		return false
	}
	return k.hold(s, op, d, home, &c)
}

// crowded reports whether a limit has as many claims as it may have.
func (k *checker) crowded() bool {
	return slices.ContainsFunc(k.parts, func(x part) bool {
		claims := x.s.openClaims(&x.c)
		return claims.r != 0 && readLeases(claims.e.state()).count >= MaxHolders
	})
}

// hold takes what was found to fit, and notes it under the id and in the limiters.
func (k *checker) hold(s *shard, op *Op, d *Decision, home *shard, c *cell) bool {
	x := hold{endsNs: addNs(s.nowNs, op.TTLNs), units: op.Cost, ttlNs: op.TTLNs, high: op.High}
	x.forgetNs = addNs(x.endsNs, s.t.opts.IDLifetimeNs)
	for i := 0; ; i++ {
		pair, more := op.pair(i)
		if !more {
			break
		}
		x.pairs = append(x.pairs, holdPair{Pair: pair})
	}
	memory := s.t.evictions()
	if !home.ensure(c, kindHold, x.len()) {
		d.Status = OutOfMemory
		return false
	}
	x.write(c.e.state())
	home.touched(c)
	if memory != s.t.evictions() {
		k.reopen()
	}
	k.take(s, op, op.Cost, d)
	if d.Status != OK {
		home.drop(c)
		return false
	}
	x.answer = *d
	k.claim(op, &x)
	x.write(c.e.state()) // the answer, and what was taken
	return true
}

// claim notes what a hold took in the limiters, and in the hold which they are.
func (k *checker) claim(op *Op, x *hold) {
	for i := range k.groups {
		g := &k.groups[i]
		for j := g.from; j < g.to && g.fits; j++ {
			p := &k.parts[j]
			p.reopen() // which voids the claims on another limit
			p.s.addClaim(&p.c, op.ID, op.Cost, x.endsNs)
			x.pairs[p.pair].took |= 1 << p.limit
		}
	}
}

func (k *checker) reopen() {
	for i := range k.parts {
		k.parts[i].reopen()
	}
}

// commit carries out an OpCommit. Less than was held is given back as far as it is
// still there; more is taken even where there is no room for it.
func (s *shard) commit(op *Op, d *Decision) bool {
	_, c := s.t.openHold(op.Key)
	if !c.live {
		d.Status = NoHold
		return false
	}
	x := readHold(c.e.state())
	if x.phase == holdSettled {
		if *d = (Decision{Allowed: 1, Remaining: x.left}); x.actual != op.Cost {
			*d = Decision{Status: OtherTerms}
		}
		return false
	}
	more := op.Cost
	if x.phase == holdOpen && s.nowNs < x.endsNs {
		s.t.release(op.Key, &x, x.units-min(op.Cost, x.units))
		more -= min(op.Cost, x.units)
	}
	x.phase, x.actual, x.left = holdSettled, op.Cost, s.checker.charge(s, &x, more)
	s.keepHold(&c, &x)
	*d = Decision{Allowed: 1, Remaining: x.left}
	return true
}

// cancel carries out an OpCancel.
func (s *shard) cancel(op *Op, d *Decision) bool {
	_, c := s.t.openHold(op.Key)
	if !c.live {
		return false
	}
	x := readHold(c.e.state())
	if d.Allowed = oneIf(x.phase == holdCancelled); x.phase != holdOpen || s.nowNs >= x.endsNs {
		return false
	}
	s.t.release(op.Key, &x, x.units)
	x.phase, d.Allowed = holdCancelled, 1
	s.keepHold(&c, &x)
	return true
}

// keepHold keeps what became of a hold, for whoever asks again.
func (s *shard) keepHold(c *cell, x *hold) {
	x.forgetNs = addNs(s.nowNs, s.t.opts.IDLifetimeNs)
	x.write(c.e.state())
	c.relink = true
	s.touched(c)
}

// release gives units back to all limiters that a hold took from.
func (t *Table) release(id []byte, x *hold, units int64) {
	for _, p := range x.pairs {
		for limit := range MaxPolicyLimits {
			if p.took>>limit&1 == 0 {
				continue
			}
			name := append([]byte(cellPrefix(string(p.Policy), limit)), p.Key...)
			h, s := t.find(name)
			c := cell{hash: h, key: name}
			s.open(&c)
			s.bringUp(&c)
			s.settleClaim(&c, id, units)
		}
	}
}

// charge takes units from all limits in force for a hold, whether they have them or
// not, and returns the least that is left of one; -1 when its policies are gone.
func (k *checker) charge(s *shard, x *hold, units int64) (left int64) {
	k.parts, k.groups = k.parts[:0], k.groups[:0]
	look := Op{High: x.high}
	for i, pair := range x.pairs {
		if p := s.policy(pair.Policy); p != nil {
			_, at := s.t.find(pair.Key)
			k.add(at, p, i, pair.Key, &look)
		}
	}
	if len(k.groups) == 0 {
		return -1
	}
	for i := range k.parts {
		p := &k.parts[i]
		if p.reopen(); units > 0 {
			p.op.Cost, p.op.forced = units, true
			p.s.take(&p.c, &p.op, &p.d)
			p.op.forced = false
		}
	}
	for i := range k.parts {
		k.parts[i].reopen()
		k.parts[i].ask(0)
	}
	var d Decision
	k.tightest(&look, &d)
	return d.Remaining
}

// placesOfHold adds the shards of the keys of a hold to a list.
func (t *Table) placesOfHold(id []byte, list []int) []int {
	t.shards[t.placeOf(id)].mu.Lock()
	defer t.shards[t.placeOf(id)].mu.Unlock()
	return t.places(id, list)
}

// places is placesOfHold for who has locked the shard of the id.
func (t *Table) places(id []byte, list []int) []int {
	if _, c := t.openHold(id); c.r != 0 {
		for _, p := range readHold(c.e.state()).pairs {
			list = append(list, t.placeOf(p.Key))
		}
	}
	return list
}

// holdsWithin reports whether the holds that operations settle have all their keys in
// shards that are locked.
func (t *Table) holdsWithin(ops []Op, locked []int) bool {
	for i := range ops {
		if ops[i].Code != OpCommit && ops[i].Code != OpCancel {
			continue
		}
		for _, place := range t.places(ops[i].Key, nil) {
			if _, ok := slices.BinarySearch(locked, place); !ok {
				return false
			}
		}
	}
	return true
}
