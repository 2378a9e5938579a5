package engine

import (
	"slices"

	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/leases"
	"github.com/weir-project/weir/engine/internal/store"
)

// reserve carries out an OpReserve: a check whose take can be settled. A denial leaves
// nothing behind, so the id may be used again.
func (s *shard) reserve(h uint64, op *Op, d *Decision) bool {
	if op.Dry {
		return s.check(h, op, d)
	}
	home, c := s.t.openHold(op.ID)
	if c.Live {
		if x := store.ReadHold(c.Entry.State()); sameHold(&x, op) {
			*d = unpack(&x.Answer)
		} else {
			d.Status = OtherTerms
		}
		return false
	}
	k := &s.checker
	if !k.resolve(s, h, op, d) {
		return false
	}
	if slices.ContainsFunc(k.parts, func(x part) bool { return x.strikes() }) {
		d.Status = NotRefundable // what failed has failed
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
		claims := x.s.OpenAllocations(&x.c)
		return claims.Ref != 0 && leases.Read(claims.Entry.State()).Count >= MaxHolders
	})
}

// hold takes what was found to fit, and notes it under the id and in the limiters.
func (k *checker) hold(s *shard, op *Op, d *Decision, home *shard, c *store.Cell) bool {
	x := store.Hold{EndsNs: arith.AddNs(s.NowNs, op.TTLNs), Units: op.Cost, TTLNs: op.TTLNs, High: op.High}
	x.ForgetNs = arith.AddNs(x.EndsNs, s.t.opts.IDLifetimeNs)
	for i := 0; ; i++ {
		pair, more := op.pair(i)
		if !more {
			break
		}
		x.Pairs = append(x.Pairs, store.HoldPair{Policy: pair.Policy, Key: pair.Key})
	}
	memory := s.t.evictions()
	if !home.Ensure(c, store.KindHold, x.Len()) {
		d.Status = OutOfMemory
		return false
	}
	x.Write(c.Entry.State())
	home.Touched(c)
	if memory != s.t.evictions() {
		k.reopen()
	}
	k.take(s, op, op.Cost, d)
	if d.Status != OK {
		home.Drop(c)
		return false
	}
	x.Answer = d.pack()
	k.claim(op, &x)
	x.Write(c.Entry.State()) // the answer, and what was taken
	return true
}

// claim notes what a hold took in the limiters, and in the hold which they are.
func (k *checker) claim(op *Op, x *store.Hold) {
	for i := range k.groups {
		g := &k.groups[i]
		for j := g.from; j < g.to && g.fits; j++ {
			p := &k.parts[j]
			p.reopen() // which voids the claims on another limit
			p.s.AddAllocation(&p.c, op.ID, op.Cost, x.EndsNs)
			x.Pairs[p.pair].Took |= 1 << p.limit
		}
	}
}

func (k *checker) reopen() {
	for i := range k.parts {
		k.parts[i].reopen()
	}
}
