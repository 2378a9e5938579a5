package engine

// A check decides under policies: each limit of each policy has a limiter of its own
// for the key it is asked about, and a check takes from all of them or from none. It
// first looks at all, changing nothing, and then takes. The shards involved are
// locked and stand at the same instant.

// NoPart stands in Decision.Part for a policy that is disabled or sets a key no limit.
const NoPart = 15

// checker is the memory of one check: the limits it looks at, grouped by policy. It
// belongs to the shard of the check's first key.
type checker struct {
	name   []byte
	parts  []part
	groups []group

	set    *Policies // in which the policy asked for last was found
	recent *Policy
}

// part is one limit of a check.
type part struct {
	s     *shard
	c     cell
	op    Op // the take of this limit alone
	d     Decision
	kept  int64 // units of the limit that are not for this check
	pair  uint8
	limit uint8
	fits  bool // it has the units
}

// group is the limits of one policy for one key.
type group struct {
	policy   *Policy
	from, to int // of the parts
	fits     bool
}

// pair returns what a check asks at a place, and how many there are.
func (op *Op) pair(i int) (Pair, bool) {
	if i == 0 {
		return Pair{Policy: op.Text, Key: op.Key}, true
	}
	if i > len(op.Also) {
		return Pair{}, false
	}
	return op.Also[i-1], true
}

// PairAt returns the pair of a check that Decision.Pair names.
func (op *Op) PairAt(i int) Pair {
	p, _ := op.pair(i)
	return p
}

// check carries out an OpCheck and reports whether it took something.
func (s *shard) check(h uint64, op *Op, d *Decision) bool {
	if len(op.Also) == 0 {
		if p := s.policy(op.Text); p != nil && p.decidesAtOnce(op) {
			return s.checkOne(h, p, op, d)
		}
	}
	k := &s.checker
	if !k.resolve(s, h, op, d) {
		return false
	}
	cost, fits := k.look(op)
	if !fits {
		k.deny(op, d)
		return false
	}
	return k.take(s, op, cost, d)
}

// policy finds a policy, at once when it is the one that was asked for last.
func (s *shard) policy(name []byte) *Policy {
	set := s.t.policies.Load()
	if k := &s.checker; k.set != set || string(name) != k.recent.Name {
		p := set.Get(name)
		if p == nil {
			return nil
		}
		k.set, k.recent = set, p
	}
	return s.checker.recent
}

// decidesAtOnce reports whether a check is one take of one limit. (A leaky bucket by
// itself grants no part of a cost.)
func (p *Policy) decidesAtOnce(op *Op) bool {
	return p.simple && (p.Reserved == 0 || op.High) && (!op.Partial || p.Limits[0].Limit.Algorithm != LeakyBucket)
}

// checkOne is check for one policy with one limit: the common case takes at once.
func (s *shard) checkOne(h uint64, p *Policy, op *Op, d *Decision) bool {
	if untilNs, blocked := s.blockedUntil(h, op.Key); blocked {
		*d = p.blocked(s.spanMs(untilNs), 0)
		p.counts(s).denied.Add(oneIf(op.counts()))
		s.weighBlocked(h, op.Key, op)
		return false
	}
	l := &p.Limits[0]
	one := Op{Cost: op.Cost, Partial: op.Partial, Dry: op.Dry, Limit: l.Limit}
	if !op.Partial {
		one.WaitNs = l.WaitNs
	}
	var c cell
	s.openPart(&c, &one, l, p.prefixes[0], op.Key)
	changed := s.take(&c, &one, d)
	if d.Status != OK {
		return false
	}
	if d.Allowed == 0 && op.Cost > 0 {
		p.delay(d)
	}
	if op.counts() {
		s.counts.count(l.Limit.Algorithm, d.Allowed > 0)
		p.counts(s).count(d.Allowed > 0)
		s.weigh(&c, op.weight(d), d.verdict())
	}
	return changed
}

// openPart finds the limiter of a limit for a key. One of another algorithm, which
// the policy had before, is the same as none.
func (s *shard) openPart(c *cell, op *Op, l *PolicyLimit, prefix string, key []byte) {
	s.settleGone() // of a change in the same atomic step
	name := append(append(s.checker.name[:0], prefix...), key...)
	s.checker.name = name
	*c = cell{hash: s.t.hashKey(name), key: name}
	s.open(c)
	s.bringUp(c)
	c.live = c.live && c.e.kind() == uint8(l.Limit.Algorithm)
	if op.Key = name; l.Zone != nil {
		op.Calendar = l.Zone.Window(s.nowNs+s.offsetNs, l.Limit.Mode)
	}
}

// counts reports whether the operation is one that statistics count.
func (op *Op) counts() bool { return op.Cost > 0 && !op.Dry }

// resolve finds the policies and limiters of a check. When the answer is known
// without them it gives it and returns false.
func (k *checker) resolve(home *shard, h uint64, op *Op, d *Decision) bool {
	k.parts, k.groups = k.parts[:0], k.groups[:0]
	var blocked *Policy
	for i := 0; ; i++ {
		pair, more := op.pair(i)
		if !more {
			break
		}
		p := home.policy(pair.Policy)
		if p == nil {
			*d = Decision{Status: UnknownPolicy, Pair: uint8(i)}
			return false
		}
		s := home
		if i > 0 {
			h, s = home.t.find(pair.Key)
		}
		if untilNs, is := s.blockedUntil(h, pair.Key); is {
			if b := p.blocked(s.spanMs(untilNs), i); blocked == nil || longer(b.RetryMs, d.RetryMs) {
				*d, blocked = b, p
			}
		}
		k.add(s, p, i, pair.Key, op)
	}
	if blocked != nil {
		blocked.counts(home).denied.Add(oneIf(op.counts()))
		key := op.PairAt(int(d.Pair)).Key
		h, s := home.t.find(key)
		s.weighBlocked(h, key, op)
	}
	return blocked == nil
}

// add adds the limits of a policy for a key.
func (k *checker) add(s *shard, p *Policy, pair int, key []byte, op *Op) {
	g := group{policy: p, from: len(k.parts)}
	if !p.Disabled {
		limits := p.limitsFor(key, s.nowNs)
		for i := range limits {
			k.addPart(s, p, &limits[i], pair, i, key, op)
		}
	}
	g.to = len(k.parts)
	k.groups = append(k.groups, g)
}

func (k *checker) addPart(s *shard, p *Policy, l *PolicyLimit, pair, limit int, key []byte, op *Op) {
	if len(k.parts) == cap(k.parts) {
		k.parts = append(k.parts, part{})
	} else {
		k.parts = k.parts[:len(k.parts)+1]
	}
	x := &k.parts[len(k.parts)-1]
	name := x.op.Key // its memory is used again
	*x = part{s: s, pair: uint8(pair), limit: uint8(limit), op: Op{Limit: l.Limit}}
	if p.Reserved > 0 && !op.High {
		x.kept = reservedOf(p, &l.Limit)
	}
	if !op.Partial {
		x.op.WaitNs = l.WaitNs
	}
	name, s.checker.name = s.checker.name, name[:0]
	s.openPart(&x.c, &x.op, l, p.prefixes[limit], key)
	s.checker.name = name
}

// reservedOf is how many units of a limit are kept for high priority: the fraction,
// rounded down, so that a limit of one unit is open to all.
func reservedOf(p *Policy, l *Limit) int64 {
	return wideMul(uint64(l.Max), uint64(p.Reserved)).floor(1000)
}

// look looks at every limit and returns the units that may be taken from all, 1 to
// the operation's cost, and whether they fit all that bind.
func (k *checker) look(op *Op) (cost int64, fits bool) {
	if cost = op.Cost; op.Partial && cost > 0 {
		cost = max(k.left(cost), 1)
	}
	fits = true
	for i := range k.groups {
		g := &k.groups[i]
		g.fits = true
		for j := g.from; j < g.to; j++ {
			x := &k.parts[j]
			// What a shadow does not take has to be asked for the answer.
			x.fits = !g.policy.Shadow && x.surely(cost) || x.ask(cost)
			g.fits = g.fits && x.fits
		}
		fits = fits && (g.fits || g.policy.Shadow)
	}
	return cost, fits
}

// left is how many units, at most most, are left of every limit that binds.
func (k *checker) left(most int64) int64 {
	for i := range k.groups {
		for j := k.groups[i].from; j < k.groups[i].to && !k.groups[i].policy.Shadow; j++ {
			x := &k.parts[j]
			x.ask(0)
			most = min(most, x.d.Remaining-x.kept)
		}
	}
	return most
}

// surely reports whether it is plain to see, without the arithmetic of a decision, that
// a limit has the units. Most have: so a check costs little more than its takes.
func (x *part) surely(cost int64) bool {
	x.op.Cost = cost + x.kept
	return x.s.fits(&x.c, &x.op)
}

// ask looks at a limit: whether it has the units, and beside them what is kept.
func (x *part) ask(cost int64) bool {
	x.op.Dry, x.op.Cost = true, cost
	if cost > 0 {
		x.op.Cost += x.kept
	}
	x.d = Decision{}
	x.s.take(&x.c, &x.op, &x.d)
	return x.d.Allowed > 0
}

// take takes what was found to fit, from all limits or, without memory, from none.
func (k *checker) take(s *shard, op *Op, cost int64, d *Decision) bool {
	memory, changed := s.t.evictions(), false
	for i := range k.groups {
		g := &k.groups[i]
		for j := g.from; j < g.to && g.fits; j++ {
			x := &k.parts[j]
			if memory != s.t.evictions() { // a limiter that was found may be gone
				x.reopen()
			}
			x.op.Dry, x.op.Cost = op.Dry, cost
			changed = x.s.take(&x.c, &x.op, &x.d) || changed
			if x.d.Status != OK {
				k.undo(i, j, cost)
				*d = Decision{Status: x.d.Status}
				return false
			}
		}
	}
	k.admit(s, op, cost, d)
	return changed
}
