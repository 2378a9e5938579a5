package engine

import (
	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/store"
)

// longerWait reports whether wait a is longer than wait b, in milliseconds. -1 is the longest wait.
func longerWait(a, b int64) bool { return b >= 0 && (a < 0 || a > b) }

// blocked returns the answer for a key under an administrative block.
func (p *Policy) blocked(leftMs int64, pair int) Decision {
	limit := p.reported(&p.Limits[0].Limit)
	return Decision{RetryMs: leftMs, ResetMs: leftMs, Limit: limit, Pair: uint8(pair), Part: NoPart}
}

// reported returns the size of a limit as decisions report it. This is Limit.Max, or, if the policy has
// ReportNs and the limit is a bucket, the units that its rate gives in ReportNs, at least 1.
func (p *Policy) reported(l *Limit) int64 {
	if p.ReportNs == 0 || !store.IsBucket(uint8(l.Algorithm)) {
		return l.Max
	}
	return min(max(arith.Mul(uint64(l.Rate.Units), uint64(p.ReportNs)).Floor(l.Rate.PerNs), 1), MaxUnits)
}

// delay raises the retry time of a denial to the policy's minimum.
func (p *Policy) delay(d *Decision) {
	if d.RetryMs >= 0 {
		d.RetryMs = max(d.RetryMs, arith.NsToMs(p.RetryNs))
	}
}

// deny answers for the limit with the longest wait. It reports whether it counted strikes (see extend). Like a
// denied OpTake, it puts the limits that denied the check in force (see adopt).
func (k *checker) deny(op *Op, d *Decision) (changed bool) {
	changed = k.extend(op)
	var binding *part
	for i := range k.groups {
		g := &k.groups[i]
		if g.fits || g.policy.Shadow {
			continue
		}
		for j := g.from; j < g.to; j++ {
			x := &k.parts[j]
			if x.fits {
				continue
			}
			x.followMove()
			g.policy.delay(&x.d)
			if binding == nil || longerWait(x.d.RetryMs, binding.d.RetryMs) {
				binding = x
			}
			x.putInForce(op)
		}
		if op.counts() {
			g.policy.counts(k.parts[g.from].s).count(false)
		}
	}
	k.answer(binding, d)
	d.Allowed, d.Locked = 0, k.lockedOut()
	if op.counts() {
		binding.s.tally(binding.op.Limit.Algorithm, &binding.c, op, op.Cost, d)
	}
	return changed
}

// putInForce carries out a take that is denied, so that its limit is in force from then on.
func (x *part) putInForce(op *Op) {
	if op.Dry || op.Cost == 0 || x.s.Looking || !adopts(&x.s.Store, &x.c, &x.op, &x.d) {
		return
	}
	var again Decision
	x.op.Dry = false
	x.s.take(&x.c, &x.op, &again)
}

// answer fills in the part's numbers, without the reserved units.
func (x *part) answer(d *Decision) {
	*d = x.d
	d.Pair, d.Part = x.pair, x.limit
	d.Remaining = x.left()
}

// answer fills in a part's numbers as its policy reports them. Groups are in the order of pairs.
func (k *checker) answer(x *part, d *Decision) {
	x.answer(d)
	if p := k.groups[int(x.pair)-k.first].policy; p.ReportNs > 0 {
		d.Limit = p.reported(&x.op.Limit)
	}
}

// left returns how many units of the limit remain for a check of the same priority.
func (x *part) left() int64 { return max(x.d.Remaining-x.reserved, 0) }

// admit answers for the limit with the fewest units left, and with the longest delay that any limit asks for.
// If strikes began a penalty, it answers for the strike with the longest penalty instead.
func (k *checker) admit(s *shard, op *Op, cost int64, d *Decision) {
	x := k.penalty()
	if x != nil {
		k.answer(x, d)
		d.Allowed = 0
	} else {
		x = k.tightest(d)
		d.Allowed = 1
		if op.Partial {
			d.Allowed = cost
		}
	}
	d.Locked = k.lockedOut()
	if !op.counts() {
		return
	}
	for i := range k.groups {
		if g := &k.groups[i]; g.from < g.to {
			k.countOutcome(g, s, cost)
		}
	}
	switch {
	case x == nil:
	case d.Allowed > 0:
		s.decided.admitted[x.op.Limit.Algorithm]++
	default:
		s.decided.denied[x.op.Limit.Algorithm]++
	}
}

// penalty finds the strike that began the longest penalty, among the policies that bind.
func (k *checker) penalty() (binding *part) {
	for i := range k.groups {
		g := &k.groups[i]
		x := k.punished(g)
		if x == nil || g.policy.Shadow {
			continue
		}
		if g.policy.delay(&x.d); binding == nil || longerWait(x.d.RetryMs, binding.d.RetryMs) {
			binding = x
		}
	}
	return binding
}

// punished finds the limit of a group whose strike began the longest penalty.
func (k *checker) punished(g *group) (longest *part) {
	for j := g.from; j < g.to && g.fits && g.strikes; j++ {
		x := &k.parts[j]
		if x.strikes() && x.d.Allowed == 0 && (longest == nil || longerWait(x.d.RetryMs, longest.d.RetryMs)) {
			longest = x
		}
	}
	return longest
}

// countOutcome counts an admitted check, or one that a strike denied, for one of its policies.
func (k *checker) countOutcome(g *group, s *shard, cost int64) {
	c, x, v := g.policy.counts(s), &k.parts[g.from], Admitted
	switch p := k.punished(g); {
	case g.policy.Shadow && (!g.fits || p != nil):
		c.shadowed.Add(1)
		return
	case p != nil:
		x, v = p, Denied
	}
	c.count(v == Admitted)
	x.s.heavy.Weigh(x.s.NowNs, x.c.Hash, x.c.Key, cost, v)
}

// tightest finds the limit with the fewest units left and fills in its numbers. It considers limits that bind,
// and shadows only if no limit binds.
func (k *checker) tightest(d *Decision) *part {
	if x, delayMs := k.leastLeft(false); x != nil {
		k.answer(x, d)
		d.RetryMs = delayMs
		return x
	}
	if x, _ := k.leastLeft(true); x != nil {
		k.answer(x, d)
		d.RetryMs = 0 // a shadow delays nobody
		return x
	}
	*d = Decision{Remaining: MaxUnits, Limit: MaxUnits, Part: NoPart, Pair: uint8(k.first)}
	if p := k.groups[0].policy; p.Disabled {
		d.Remaining, d.Limit = p.Limits[0].Limit.Max, p.reported(&p.Limits[0].Limit)
	}
	return nil
}

// leastLeft finds the limit with the fewest units left, either among shadows or among limits that bind. It also
// returns the longest delay that one of these limits asks for.
func (k *checker) leastLeft(shadow bool) (x *part, delayMs int64) {
	for i := range k.groups {
		g := &k.groups[i]
		for j := g.from; j < g.to && g.policy.Shadow == shadow; j++ {
			now := &k.parts[j]
			if delayMs = max(delayMs, now.d.RetryMs); x == nil || now.left() < x.left() {
				x = now
			}
		}
	}
	return x, delayMs
}

// undo gives back the units of a take that ran out of memory at the given part of the given group. The earlier
// parts have given units.
func (k *checker) undo(group, part int, cost int64) {
	for i := range k.groups[:group+1] {
		g := &k.groups[i]
		for j := g.from; j < min(g.to, part) && g.fits && cost > 0; j++ {
			x := &k.parts[j]
			x.reopen()
			if x.c.Live {
				x.s.RemoveUnits(x.c.Entry, &x.op.Limit, min(cost, x.s.Refundable(x.c.Entry)))
				if x.strikes() { // no penalty ran before this check
					store.SetStrikeBlocked(x.c.Entry.State(), 0)
				}
				x.s.Reduced(&x.c)
			}
		}
	}
}

// extends reports whether the part's limit counts checks that its own penalty denies.
func (x *part) extends() bool { return x.strikes() && x.op.Limit.Strikes&Extend != 0 }

// extend counts a denied check in each limit with rule.Extend whose running penalty denies it. This restarts the
// penalty. extend reports whether it changed a limiter.
func (k *checker) extend(op *Op) (changed bool) {
	if !k.strikes || op.Cost == 0 {
		return false
	}
	memory := k.parts[0].s.t.evictions()
	for i := range k.parts {
		x := &k.parts[i]
		if x.fits || !x.extends() {
			continue
		}
		if memory != x.s.t.evictions() {
			if x.reopen(); !x.c.Live { // evicted meanwhile: the check stays denied
				continue
			}
		}
		x.op.Dry, x.op.Cost = op.Dry, op.Cost
		changed = x.take() || changed
		x.op.Cost = 0 // the value that ask sets for strikes
	}
	if memory != k.parts[0].s.t.evictions() { // a limiter that was found may be gone
		k.reopen()
	}
	return changed
}

// lockedOut returns a bit for each pair for which this check's strikes began the penalty of the last step.
// Shadows lock nobody out.
func (k *checker) lockedOut() (pairs uint16) {
	for i := range k.groups {
		g := &k.groups[i]
		for j := g.from; j < g.to && g.strikes && !g.policy.Shadow; j++ {
			if x := &k.parts[j]; x.strikes() && x.d.Locked != 0 {
				pairs |= 1 << x.pair
			}
		}
	}
	return pairs
}
