package engine

import (
	"bytes"
	"slices"

	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/rule"
	"github.com/weir-project/weir/engine/internal/store"
)

// A hold takes units before the true cost of a request is known (OpReserve), and more of them while the request runs
// (OpExtend). OpCommit reports the cost so far (Keep), or completes the hold with the true cost, or OpCancel cancels
// it. A hold consists of a record under its id (this file) and of allocations in every limiter that it took from
// (package store).
//
//	none ── OpReserve ─▶ held ─┬─ OpCommit ─▶ completed ─┐
//	                    ▲   │  ├─ OpCancel ─▶ cancelled ─┼─ IDLifetime ─▶ none
//	                    └───┘  └─ its end ──▶ ended ─────┘
//	                 OpExtend, OpCommit with Keep
//
// Allocations expire by themselves, so the end of a hold needs no action, except that OpEnd tells it (ends.go). A hold
// that has ended or was cancelled has given back everything that it did not report as used, unless it keeps its units
// (Keep). A later OpCommit takes the rest of the true cost and completes the hold: the client used the units, and a
// limit that did not count them would admit too much.

// HoldBytes returns how many bytes of MaxHoldBytes the policies and keys of an OpReserve need.
func (op *Op) HoldBytes() (n int) {
	for i := 0; ; i++ {
		pair, more := op.pair(i)
		if !more {
			return n + store.SourcesLen(op.Else)
		}
		n += store.HoldPairHead + len(pair.Policy) + len(pair.Key)
	}
}

// sameHold reports whether an OpReserve has the terms under which the hold was made.
func sameHold(x *store.Hold, op *Op) bool {
	if x.Units != op.Cost || x.TTLNs != op.TTLNs || x.High != op.High || x.Keep != op.Keep ||
		x.Else != op.Else || len(x.Pairs) != 1+len(op.Also) {
		return false
	}
	for i, p := range x.Pairs {
		asked := op.PairAt(i)
		if string(p.Policy) != string(asked.Policy) || string(p.Key) != string(asked.Key) {
			return false
		}
	}
	return true
}

// openHold finds the record of a hold in the shard of its id, which the caller has locked.
func (t *Table) openHold(id []byte) (s *shard, c store.Cell) {
	h, s := t.find(id)
	c = store.Cell{Hash: h, Key: id, Space: store.Holds}
	s.Open(&c)
	return s, c
}

// commit carries out an OpCommit. If the true cost is less than the units of the hold, it gives back the
// difference, as far as those units still count. If the cost is more, it takes the difference even if the limits have
// fewer units left.
func (s *shard) commit(op *Op, d *Decision) bool {
	_, c := s.t.openHold(op.Key)
	if !c.Live {
		d.Status = NoHold
		return false
	}
	x := store.ReadHold(c.Entry.State())
	if x.Phase == store.HoldCompleted && op.Keep {
		d.Status = HoldEnded
		return false
	}
	if x.Phase == store.HoldCompleted {
		if *d = (Decision{Allowed: 1, Remaining: x.Left}); x.Actual != op.Cost {
			*d = Decision{Status: OtherTerms}
		}
		return false
	}
	held := x.Phase == store.HoldOpen && s.NowNs < x.EndsNs
	switch {
	case op.Cost < x.Actual: // less than was used already
		d.Status = OtherTerms
		return false
	case op.Keep && !held:
		d.Status = HoldEnded
		return false
	case op.Keep:
		return s.report(&c, &x, op, d)
	}
	counted := x.Actual // units that count against the limits now
	switch {
	case held:
		counted = x.Total()
		s.t.releaseHold(op.Key, &x, max(counted-op.Cost, 0))
	case x.Phase != store.HoldCancelled:
		counted = x.UsedAtEnd()
		s.tellEnd(op.Key, &x)
	}
	x.Left = s.charge(&x, op.Key, x.Owed(op.Cost, counted == x.Total()))
	s.tellHold(EventSettled, op.Key, &x, op.Cost)
	x.Phase, x.Actual = store.HoldCompleted, op.Cost
	s.storeHold(&c, &x)
	*d = Decision{Allowed: 1, Remaining: x.Left}
	return true
}

// report carries out an OpCommit with Keep, of a hold that is held. Units beyond those of the hold are added to it.
func (s *shard) report(c *store.Cell, x *store.Hold, op *Op, d *Decision) bool {
	keepPairs(x)
	more := max(op.Cost-x.Total(), 0)
	if !s.growHold(c, x, more, x.Extensions) {
		d.Status = OutOfMemory
		return false
	}
	x.Report(op.Cost, more)
	unused := x.Unused(x.Total() - op.Cost)
	s.t.eachAllocation(x, func(s *shard, c *store.Cell, source int) { s.UseAllocations(c, op.Key, unused[source]) })
	var due store.BySource
	due[x.LastSource()] = more
	*d = Decision{Allowed: 1, Remaining: s.charge(x, op.Key, due)}
	s.writeHold(c, x)
	return true
}

// growHold adds units to a hold, and sets the number of its extensions. If memory is exhausted it returns false, and
// the hold is as before. The pairs of the hold must not be in its entry, which may be replaced.
func (s *shard) growHold(c *store.Cell, x *store.Hold, units, extensions int64) bool {
	before := *x
	x.Added, x.Extensions = x.Added+units, extensions
	if s.Stretch(c, x.Len()) {
		x.Write(c.Entry.State())
		return true
	}
	*x = before
	x.Write(c.Entry.State())
	return false
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
	s.t.releaseHold(op.Key, &x, x.Total()-x.Actual)
	s.tellHold(EventSettled, op.Key, &x, x.Actual)
	x.Phase, d.Allowed = store.HoldCancelled, 1
	s.storeHold(&c, &x)
	return true
}

// keepPairs makes the policies and keys of a hold independent of its entry.
func keepPairs(x *store.Hold) {
	for i := range x.Pairs {
		p := &x.Pairs[i]
		p.Policy, p.Key = bytes.Clone(p.Policy), bytes.Clone(p.Key)
	}
}

// storeHold records the outcome of a hold, for repeated requests.
func (s *shard) storeHold(c *store.Cell, x *store.Hold) {
	x.ForgetNs = arith.AddNs(s.NowNs, s.t.opts.IDLifetimeNs)
	s.writeHold(c, x)
}

func (s *shard) writeHold(c *store.Cell, x *store.Hold) {
	x.Write(c.Entry.State())
	c.Relink = true
	s.Touched(c)
}

// releaseHold ends the allocations of a hold and gives units back to all limiters that it took from.
func (t *Table) releaseHold(id []byte, x *store.Hold, units int64) {
	back := x.Unused(units)
	t.eachAllocation(x, func(s *shard, c *store.Cell, source int) { s.CompleteAllocations(c, id, back[source]) })
}

// eachAllocation calls do for all limiters that a hold took from, which are up to date, and their sources.
func (t *Table) eachAllocation(x *store.Hold, do func(s *shard, c *store.Cell, source int)) {
	for i, p := range x.Pairs {
		for limit := range MaxPolicyLimits {
			if p.Took>>limit&1 == 0 {
				continue
			}
			name := rule.AppendName(nil, p.Policy, limit, p.Key)
			h, s := t.find(name)
			s.flushForgotten() // a policy change in the same atomic step may have recorded forgotten usage
			c := store.Cell{Hash: h, Key: name}
			s.Open(&c)
			s.UpToDate(&c)
			do(s, &c, x.Else.Of(i))
		}
	}
}

// charge takes units for a hold from its sources, even from a limit with fewer units left. It returns the fewest units
// that a limit of the last source then has left, or -1 if all policies of that source are gone.
func (s *shard) charge(x *store.Hold, id []byte, due store.BySource) (left int64) {
	for i := range x.LastSource() + 1 {
		if due[i] > 0 || i == x.LastSource() {
			left, _ = s.checker.charge(s, x.SourcePairs(i), x.High, id, due[i])
		}
	}
	return left
}

// charge takes units from all limits of some pairs, but not from strikes. It returns the fewest units that a limit then
// has left, or -1 without a limit. all reports whether there was memory for all of them.
func (k *checker) charge(s *shard, pairs []store.HoldPair, high bool, id []byte, units int64) (left int64, all bool) {
	k.clear()
	look := Op{High: high}
	for _, pair := range pairs {
		if p := s.policy(pair.Policy); p != nil {
			h, at := s.t.find(pair.Key)
			k.add(at, h, p, len(k.groups), pair.Key, &look) // a part's pair is the number of its group
		}
	}
	if len(k.groups) == 0 {
		return -1, true
	}
	all = true
	for i := range k.parts {
		p := &k.parts[i]
		if p.reopen(); units > 0 && !p.strikes() {
			p.op.Cost, p.op.forced = units, true
			p.take()
			p.op.forced, all = false, all && p.d.Status == OK
		}
	}
	for i := range k.parts {
		p := &k.parts[i]
		if p.reopen(); units > 0 {
			p.tellThresholds(s, k.groups[p.pair].policy, id, units)
		}
		p.ask(0)
	}
	var d Decision
	k.tightest(&d)
	return d.Remaining, all
}

// chargePairs carries out an OpCharge. If one of its policies does not exist, it changes nothing. A block does not
// matter: the units were used.
func (s *shard) chargePairs(op *Op, d *Decision) bool {
	if !s.knows(op, d) {
		return false
	}
	var pairs []store.HoldPair
	for i := 0; ; i++ {
		pair, more := op.pair(i)
		if !more {
			break
		}
		pairs = append(pairs, store.HoldPair{Policy: pair.Policy, Key: pair.Key})
	}
	k := &s.checker
	left, all := k.charge(s, pairs, op.High, nil, op.Cost)
	d.Remaining, d.Allowed = max(left, 0), arith.OneIf(all)
	for i := range k.parts {
		if p := &k.parts[i]; op.Cost > 0 && !p.strikes() {
			p.s.tally(p.op.Limit.Algorithm, &p.c, op, op.Cost, d)
		}
	}
	return op.Cost > 0
}

// reserve carries out an OpReserve: a check whose units can be committed or cancelled later. A denied OpReserve
// stores no hold, so its id may be used again.
func (s *shard) reserve(h uint64, op *Op, d *Decision) bool {
	if op.Dry {
		return s.check(h, op, d)
	}
	home, c := s.t.openHold(op.ID)
	if c.Live {
		if x := store.ReadHold(c.Entry.State()); sameHold(&x, op) {
			*d = unpack(&x.Answer)
			d.Value = sourcesText(&x, true)
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
		d.Status = NotRefundable // a failed attempt cannot be taken back
		return false
	}
	f := funding{k: k, s: s, op: op}
	defer f.done()
	if !f.fund(d) {
		return false
	}
	if d.Status = f.refusal(op.ID); d.Status != OK {
		return false
	}
	return f.hold(d, home, &c)
}

// refusal returns why no units can be allocated to a hold in the limiters of an alternative: one has as many
// allocations as it may have, or memory is exhausted.
func (k *checker) refusal(id []byte) Status {
	for i := k.groups[0].from; i < k.groups[len(k.groups)-1].to; i++ {
		x := &k.parts[i]
		most := MaxAllocations
		if x.s.FewHolds {
			most = MaxHolders
		}
		if x.s.AllocationsOf(&x.c) >= most {
			return TooManyHolders
		}
		if !x.s.MayAllocate(&x.c, id) {
			return OutOfMemory
		}
	}
	return OK
}

// hold takes the units that fund found to fit. It records them in the hold op.ID, whose cell is c in the shard
// home, and as allocations in the limiters.
func (f *funding) hold(d *Decision, home *shard, c *store.Cell) bool {
	s, op := f.s, f.op
	x := store.Hold{
		EndsNs: arith.AddNs(s.NowNs, op.TTLNs), Units: op.Cost, TTLNs: op.TTLNs, High: op.High, Keep: op.Keep,
		Else: op.Else,
	}
	for i := range op.Else.Len() {
		if op.Else != 0 {
			x.Sources = append(x.Sources, store.Source{Reserved: f.units[i], Taken: f.units[i]})
		}
	}
	x.ForgetNs = arith.AddNs(x.EndsNs, s.t.opts.IDLifetimeNs)
	for i := 0; ; i++ {
		pair, more := op.pair(i)
		if !more {
			break
		}
		x.Pairs = append(x.Pairs, store.HoldPair{Policy: pair.Policy, Key: pair.Key})
	}
	x.Records = s.records(x.Pairs)
	memory := s.t.evictions()
	if !home.Ensure(c, store.KindHold, x.Len()) {
		d.Status = OutOfMemory
		return false
	}
	x.Write(c.Entry.State())
	home.Touched(c)
	if memory != s.t.evictions() {
		f.k.reopen()
	}
	if f.spend(d, &x); d.Status != OK {
		home.Drop(c)
		return false
	}
	x.Answer = d.pack()
	x.Write(c.Entry.State()) // now with the answer, and the limits taken from
	return true
}

// allocate records the units of a hold in its limiters, and the limiters in the hold. It returns false if it could not
// record them in a limiter that still counts them, or that evicted says may be gone.
func (k *checker) allocate(id []byte, units int64, x *store.Hold, evicted bool) (all bool) {
	all = true
	for i := range k.groups {
		g := &k.groups[i]
		for j := g.from; j < g.to && g.fits; j++ {
			p := &k.parts[j]
			p.reopen() // this drops void allocations, made under an earlier limit
			recorded := p.s.AddAllocation(&p.c, id, units, x.EndsNs, x.Keep)
			x.Pairs[p.pair].Took |= 1 << p.limit
			all = all && (recorded || !p.c.Live && !evicted) // a fast bucket may be full again already
		}
	}
	return all
}

func (k *checker) reopen() {
	for i := range k.parts {
		k.parts[i].reopen()
	}
}
