package engine

// longer compares two waits in milliseconds, of which -1 is the longest.
func longer(a, b int64) bool { return b >= 0 && (a < 0 || a > b) }

// blocked is the answer about a key under an administrative block.
func (p *Policy) blocked(leftMs int64, pair int) Decision {
	return Decision{RetryMs: leftMs, ResetMs: leftMs, Limit: p.Limits[0].Limit.Max, Pair: uint8(pair), Part: NoPart}
}

// delay makes a denial by the policy say to wait at least what the policy wants.
func (p *Policy) delay(d *Decision) {
	if d.RetryMs >= 0 {
		d.RetryMs = max(d.RetryMs, nsToMs(p.RetryNs))
	}
}

// deny answers for the limit with the longest wait. The limits that denied are put in
// force, as those of plain decisions are: see adopt.
func (k *checker) deny(op *Op, d *Decision) {
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
			g.policy.delay(&x.d)
			if binding == nil || longer(x.d.RetryMs, binding.d.RetryMs) {
				binding = x
			}
			x.putInForce(op)
		}
		if op.counts() {
			g.policy.counts(k.parts[g.from].s).count(false)
		}
	}
	binding.answer(d)
	d.Allowed = 0
	if op.counts() {
		binding.s.counts.count(binding.op.Limit.Algorithm, false)
		binding.s.weigh(&binding.c, op.Cost, Denied)
	}
}

// putInForce carries out a take that is denied.
func (x *part) putInForce(op *Op) {
	if op.Dry || op.Cost == 0 || x.s.looking || !x.s.adopts(&x.c, &x.op, &x.d) {
		return
	}
	var again Decision
	x.op.Dry = false
	x.s.take(&x.c, &x.op, &again)
}

// answer gives the part's numbers, less what is kept.
func (x *part) answer(d *Decision) {
	*d = x.d
	d.Pair, d.Part = x.pair, x.limit
	d.Remaining = max(d.Remaining-x.kept, 0)
}

// admit answers for the limit with the least left, and makes the caller hold the
// request as long as any limit wants.
func (k *checker) admit(s *shard, op *Op, cost int64, d *Decision) {
	k.tightest(op, d)
	d.Allowed = 1
	if op.Partial {
		d.Allowed = cost
	}
	if !op.counts() {
		return
	}
	for i := range k.groups {
		if g := &k.groups[i]; g.from < g.to {
			if c := g.policy.counts(s); g.fits {
				c.count(true)
				first := &k.parts[g.from]
				first.s.weigh(&first.c, cost, Admitted)
			} else {
				c.shadowed.Add(1)
			}
		}
	}
	if d.Part != NoPart {
		s.counts.count(k.parts[k.index(d)].op.Limit.Algorithm, true)
	}
}

// index finds the part that a decision names.
func (k *checker) index(d *Decision) int {
	for i := range k.parts {
		if k.parts[i].pair == d.Pair && k.parts[i].limit == d.Part {
			return i
		}
	}
	panic("engine: a decision by no limit")
}

// tightest fills in the numbers of the limit with the least left: of those that bind,
// or when there are none of the shadows.
func (k *checker) tightest(op *Op, d *Decision) {
	*d = Decision{Remaining: MaxUnits, Limit: MaxUnits, Part: NoPart}
	if p := k.groups[0].policy; p.Disabled {
		d.Remaining, d.Limit = p.Limits[0].Limit.Max, p.Limits[0].Limit.Max
	}
	for _, shadow := range [...]bool{false, true} {
		holdMs := int64(0)
		for i := range k.groups {
			for j := k.groups[i].from; j < k.groups[i].to && k.groups[i].policy.Shadow == shadow; j++ {
				var now Decision
				x := &k.parts[j]
				x.answer(&now)
				if holdMs = max(holdMs, now.RetryMs); d.Part == NoPart || now.Remaining < d.Remaining {
					*d = now
				}
			}
		}
		if d.RetryMs = holdMs; shadow {
			d.RetryMs = 0 // a shadow holds nobody up
		}
		if d.Part != NoPart {
			return
		}
	}
}

// undo gives back what was taken of the parts before one that there is no memory for.
func (k *checker) undo(group, part int, cost int64) {
	for i := range k.groups[:group+1] {
		g := &k.groups[i]
		for j := g.from; j < min(g.to, part) && g.fits && cost > 0; j++ {
			x := &k.parts[j]
			x.reopen()
			if x.c.live {
				x.s.giveBack(x.c.e, &x.op.Limit, min(cost, x.s.refundable(x.c.e)))
				x.s.settled(&x.c)
			}
		}
	}
}

// reopen finds a limiter again after others may have been dropped.
func (x *part) reopen() {
	x.c = cell{hash: x.c.hash, key: x.c.key}
	x.s.open(&x.c)
	x.s.bringUp(&x.c)
	x.c.live = x.c.live && x.c.e.kind() == uint8(x.op.Limit.Algorithm)
}

// evictions grows whenever a limiter is given up for room.
func (t *Table) evictions() int64 { return t.evicted.Load() }

// counts returns the part of the policy's tally that a shard counts in.
func (p *Policy) counts(s *shard) *tallyPart { return &p.tally[s.number%tallyParts] }
