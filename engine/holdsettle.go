package engine

import "github.com/weir-project/weir/engine/internal/arith"

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
	if d.Allowed = arith.OneIf(x.phase == holdCancelled); x.phase != holdOpen || s.nowNs >= x.endsNs {
		return false
	}
	s.t.release(op.Key, &x, x.units)
	x.phase, d.Allowed = holdCancelled, 1
	s.keepHold(&c, &x)
	return true
}

// keepHold keeps what became of a hold, for whoever asks again.
func (s *shard) keepHold(c *cell, x *hold) {
	x.forgetNs = arith.AddNs(s.nowNs, s.t.opts.IDLifetimeNs)
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
			s.settleGone() // of a change in the same atomic step
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
	k.clear()
	look := Op{High: x.high}
	for i, pair := range x.pairs {
		if p := s.policy(pair.Policy); p != nil {
			h, at := s.t.find(pair.Key)
			k.add(at, h, p, i, pair.Key, &look)
		}
	}
	if len(k.groups) == 0 {
		return -1
	}
	for i := range k.parts {
		p := &k.parts[i]
		if p.reopen(); units > 0 && !p.strikes() {
			p.op.Cost, p.op.forced = units, true
			p.take()
			p.op.forced = false
		}
	}
	for i := range k.parts {
		k.parts[i].reopen()
		k.parts[i].ask(0)
	}
	var d Decision
	k.tightest(&d)
	return d.Remaining
}
