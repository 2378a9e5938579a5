package engine

import (
	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/store"
)

// commit carries out an OpCommit. Less than was held is given back as far as it is
// still there; more is taken even where there is no room for it.
func (s *shard) commit(op *Op, d *Decision) bool {
	_, c := s.t.openHold(op.Key)
	if !c.Live {
		d.Status = NoHold
		return false
	}
	x := store.ReadHold(c.Entry.State())
	if x.Phase == store.HoldSettled {
		if *d = (Decision{Allowed: 1, Remaining: x.Left}); x.Actual != op.Cost {
			*d = Decision{Status: OtherTerms}
		}
		return false
	}
	more := op.Cost
	if x.Phase == store.HoldOpen && s.NowNs < x.EndsNs {
		s.t.release(op.Key, &x, x.Units-min(op.Cost, x.Units))
		more -= min(op.Cost, x.Units)
	}
	x.Phase, x.Actual, x.Left = store.HoldSettled, op.Cost, s.checker.charge(s, &x, more)
	s.keepHold(&c, &x)
	*d = Decision{Allowed: 1, Remaining: x.Left}
	return true
}

// cancel carries out an OpCancel.
func (s *shard) cancel(op *Op, d *Decision) bool {
	_, c := s.t.openHold(op.Key)
	if !c.Live {
		return false
	}
	x := store.ReadHold(c.Entry.State())
	if d.Allowed = arith.OneIf(x.Phase == store.HoldCancelled); x.Phase != store.HoldOpen || s.NowNs >= x.EndsNs {
		return false
	}
	s.t.release(op.Key, &x, x.Units)
	x.Phase, d.Allowed = store.HoldCancelled, 1
	s.keepHold(&c, &x)
	return true
}

// keepHold keeps what became of a hold, for whoever asks again.
func (s *shard) keepHold(c *store.Cell, x *store.Hold) {
	x.ForgetNs = arith.AddNs(s.NowNs, s.t.opts.IDLifetimeNs)
	x.Write(c.Entry.State())
	c.Relink = true
	s.Touched(c)
}

// release gives units back to all limiters that a hold took from.
func (t *Table) release(id []byte, x *store.Hold, units int64) {
	for _, p := range x.Pairs {
		for limit := range MaxPolicyLimits {
			if p.Took>>limit&1 == 0 {
				continue
			}
			name := append([]byte(cellPrefix(string(p.Policy), limit)), p.Key...)
			h, s := t.find(name)
			s.settleGone() // of a change in the same atomic step
			c := store.Cell{Hash: h, Key: name}
			s.Open(&c)
			s.BringUp(&c)
			s.CompleteAllocation(&c, id, units)
		}
	}
}

// charge takes units from all limits in force for a hold, whether they have them or
// not, and returns the least that is left of one; -1 when its policies are gone.
func (k *checker) charge(s *shard, x *store.Hold, units int64) (left int64) {
	k.clear()
	look := Op{High: x.High}
	for i, pair := range x.Pairs {
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
