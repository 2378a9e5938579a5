package engine

import (
	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/store"
)

// A check decides under policies. Each limit of each policy has its own limiter for the key. A check takes
// from all of these limiters or from none: it first evaluates all of them without changing any, and then
// takes. All shards of these limiters are locked, and have the same limiter time. A limit binds if its policy
// is not a shadow: only such a limit can deny the check.
//
// A strike limit takes the cost of a check as strikes, and denies while a penalty runs. A check whose strikes
// begin a penalty is denied although they were counted, unless the limit counts attempts (rule.Attempts). The
// units that this check took from other limits stay taken.

// NoPart is the value of Decision.Part if the key is blocked, if it has no limit, or if the policy is disabled.
const NoPart = 15

// checker is the working memory of one check: the limits that it previews, grouped by policy. It belongs to the
// shard of the check's first key.
type checker struct {
	parts  []part
	groups []group
	first  int // the number of the pair of groups[0]

	set    *Policies // the set in which recent was found
	recent *Policy   // the policy that was looked up last
	parted *Policy   // if not nil, parts are exactly the limits of this policy, in order

	strikes bool // some parts count strikes
}

// group is the limits of one policy for one key.
type group struct {
	policy   *Policy
	from, to int  // its limits are checker.parts[from:to]
	strikes  bool // some limits count strikes
	fits     bool // all limits have the units
}

// check carries out an OpCheck and returns what carryOut does.
func (s *shard) check(h uint64, op *Op, d *Decision) bool {
	if len(op.Also) == 0 {
		if p := s.policy(op.Text); p != nil && p.decidesAtOnce(op) {
			return s.checkAtOnce(h, p, op, d)
		}
	}
	k := &s.checker
	if !k.resolve(s, h, op, d) {
		return false
	}
	if op.Else != 0 {
		return s.checkDivided(op, d)
	}
	changed := false
	if cost, fits := k.look(op); fits {
		changed = k.take(s, op, cost, d)
	} else {
		changed = k.deny(op, d)
	}
	k.tellLockouts(s, op, d)
	return changed
}

// policy returns a policy by name, or nil. It caches the policy that was asked for last.
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

// decidesAtOnce reports whether checkAtOnce can carry out the check: the policy is simple and reserves no units
// that this check may not take. A partial grant also needs a single limit, whose take computes the grant. A
// leaky bucket cannot do that, because its take grants all units or none.
func (p *Policy) decidesAtOnce(op *Op) bool {
	if !p.simple || p.Reserved > 0 && !op.High {
		return false
	}
	return !op.Partial || len(p.Limits) == 1 && p.Limits[0].Limit.Algorithm != LeakyBucket
}

// checkAtOnce is check for one simple policy, the common case.
func (s *shard) checkAtOnce(h uint64, p *Policy, op *Op, d *Decision) bool {
	if untilNs, blocked := s.blockedUntil(h, op.Key, op); blocked {
		*d = p.blocked(s.SpanMs(untilNs), 0)
		s.checker.waitBehindBlock(s, op, untilNs, p, d)
		p.counts(s).denied.Add(arith.OneIf(op.counts()))
		s.weighBlocked(h, op.Key, op)
		return false
	}
	s.checker.part(s, p)
	if len(p.Limits) == 1 {
		return s.checkOne(h, p, op, d)
	}
	return s.checkAll(h, p, op, d)
}

// part sets the parts to the limits of a simple policy, unless the previous check left them there.
func (k *checker) part(s *shard, p *Policy) {
	if k.parted == p {
		return
	}
	k.clear()
	for i := range p.Limits {
		k.next(s, &p.dated[i]).limit = uint8(i)
	}
	k.groups = append(k.groups, group{policy: p, to: len(k.parts)})
	k.parted = p
}

// clear removes the parts of the previous check.
func (k *checker) clear() {
	k.parts, k.groups, k.first, k.parted, k.strikes = k.parts[:0], k.groups[:0], 0, nil, false
}

// checkAll previews all limits of a policy and takes from all of them if all fit.
func (s *shard) checkAll(h uint64, p *Policy, op *Op, d *Decision) bool {
	k := &s.checker
	g := &k.groups[0]
	if bundle := k.bundleOf(h, p, op.Key); bundle != 0 && k.previewBundle(h, op, bundle) {
		return k.takeBundle(op, d)
	}
	g.fits = true
	for i := range k.parts {
		x := &k.parts[i]
		x.setUp(op)
		x.find(h, p, op.Key)
		x.fits = x.preview(op.Cost)
		g.fits = g.fits && x.fits
	}
	if !g.fits {
		return k.deny(op, d)
	}
	return k.take(s, op, op.Cost, d)
}

// checkOne takes from the policy's only limit.
func (s *shard) checkOne(h uint64, p *Policy, op *Op, d *Decision) bool {
	x := &s.checker.parts[0]
	x.setUp(op)
	x.find(h, p, op.Key)
	x.op.Cost, x.op.Partial, x.op.Dry = op.Cost, op.Partial, op.Dry
	changed := s.take(&x.c, &x.op, d)
	if d.Status != OK {
		return false
	}
	if d.Allowed == 0 && op.Cost > 0 {
		p.delay(d)
	}
	if p.ReportNs > 0 {
		d.Limit = p.reported(&x.op.Limit)
	}
	if op.counts() {
		s.tally(x.op.Limit.Algorithm, &x.c, op, op.Cost, d)
		p.counts(s).count(d.Allowed > 0)
	}
	return changed && (d.Allowed > 0 || x.strikes())
}

// resolve finds the policies and limiters of a check. If a policy is unknown or a key is blocked, resolve fills
// in the answer and returns false.
func (k *checker) resolve(home *shard, h uint64, op *Op, d *Decision) bool {
	k.clear()
	var blocked *Policy
	lastNs := int64(0) // the end of the block that ends last
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
		if untilNs, is := s.blockedUntil(h, pair.Key, op); is {
			if b := p.blocked(s.SpanMs(untilNs), i); blocked == nil || longerWait(b.RetryMs, d.RetryMs) {
				*d, blocked = b, p
			}
			lastNs = max(lastNs, untilNs)
		}
		k.add(s, h, p, i, pair.Key, op)
	}
	if blocked != nil {
		k.waitBehindBlock(home, op, lastNs, blocked, d)
		blocked.counts(home).denied.Add(arith.OneIf(op.counts()))
		key := op.PairAt(int(d.Pair)).Key
		h, s := home.t.find(key)
		s.weighBlocked(h, key, op)
	}
	return blocked == nil
}

// add adds the limits of a policy for a key with hash h.
func (k *checker) add(s *shard, h uint64, p *Policy, pair int, key []byte, op *Op) {
	s.flushForgotten() // a policy change in the same atomic step may have recorded forgotten usage
	g := group{policy: p, from: len(k.parts)}
	if !p.Disabled {
		limits, since := p.lookup(key, s.NowNs, false)
		for i := range limits {
			x := k.next(s, &limits[i])
			x.op.Limit.Since = limits[i].Limit.Since.Later(since)
			x.setUp(op)
			x.pair, x.limit = uint8(pair), uint8(i)
			if x.strikes() {
				g.strikes, k.strikes = true, true
			} else if p.Reserved > 0 && !op.High {
				x.reserve(p)
			}
			x.find(h, p, key)
		}
	}
	g.to = len(k.parts)
	k.groups = append(k.groups, g)
}

// next appends a part for a limit.
func (k *checker) next(s *shard, l *PolicyLimit) *part {
	if len(k.parts) == cap(k.parts) {
		k.parts = append(k.parts, part{})
	} else {
		k.parts = k.parts[:len(k.parts)+1]
	}
	x := &k.parts[len(k.parts)-1]
	x.s, x.pair, x.limit, x.reserved, x.previewed, x.d.Locked = s, 0, 0, 0, false, 0
	if x.of != l { // a policy in a set is immutable
		x.of, x.op.Limit = l, l.Limit
	}
	return x
}

// reserve makes the part leave the units that its policy reserves for high priority. Debt would take them, so the part
// may not go into debt either.
func (x *part) reserve(p *Policy) {
	if x.reserved = reservedOf(p, &x.op.Limit); x.reserved > 0 && x.s.t.Rules() >= RulesWaits {
		x.op.WaitNs = 0
	}
}

// reservedOf returns how many units of a limit are reserved for high priority. It rounds the fraction down, so
// a limit of one unit is open to all checks.
func reservedOf(p *Policy, l *Limit) int64 {
	return arith.Mul(uint64(l.Max), uint64(p.Reserved)).Floor(1000)
}

// look evaluates every limit without changing it. cost is the units to take from each limit: op.Cost, or less
// for a partial grant. fits reports whether every limit that binds has them.
func (k *checker) look(op *Op) (cost int64, fits bool) {
	if cost = op.Cost; op.Partial && cost > 0 {
		cost = max(k.left(cost), 1)
	}
	return cost, k.fits(cost)
}

// fits evaluates every limit without changing it, and reports whether every limit that binds has cost units.
func (k *checker) fits(cost int64) (fits bool) {
	fits = true
	for i := range k.groups {
		g := &k.groups[i]
		g.fits = true
		for j := g.from; j < g.to; j++ {
			x := &k.parts[j]
			if x.op.Limit.Algorithm.Previewable() {
				x.fits = x.preview(cost)
			} else { // the answer may need the numbers of a shadow, which only ask computes
				x.fits = !g.policy.Shadow && x.surelyFits(cost) || x.ask(cost)
			}
			g.fits = g.fits && x.fits
		}
		fits = fits && (g.fits || g.policy.Shadow)
	}
	return fits
}

// left returns the fewest units left in a limit that binds, at most most.
func (k *checker) left(most int64) int64 {
	for i := range k.groups {
		for j := k.groups[i].from; j < k.groups[i].to && !k.groups[i].policy.Shadow; j++ {
			if x := &k.parts[j]; !x.strikes() {
				x.ask(0)
				most = min(most, x.d.Remaining-x.reserved)
			}
		}
	}
	return most
}

// take takes cost units, which look found to fit, from all limits, and answers. If memory is exhausted it takes from
// none.
func (k *checker) take(s *shard, op *Op, cost int64, d *Decision) bool {
	memory := s.t.evictions()
	changed := k.takeUnits(s, op, cost, d)
	if d.Status != OK {
		return false
	}
	if k.strikes && memory != s.t.evictions() { // extend looks at the limits that did not fit
		k.reopen()
	}
	changed = k.extend(op) || changed
	k.admit(s, op, cost, d)
	k.tellThresholds(s, op, cost)
	return changed
}

// takeUnits is take without the answer.
func (k *checker) takeUnits(s *shard, op *Op, cost int64, d *Decision) (changed bool) {
	memory := s.t.evictions()
	for i := range k.groups {
		g := &k.groups[i]
		for j := g.from; j < g.to && g.fits; j++ {
			x := &k.parts[j]
			if memory != s.t.evictions() { // an eviction may have dropped a limiter
				x.reopen()
			}
			x.op.Dry, x.op.Cost = op.Dry, cost
			changed = x.take() || changed
			if x.d.Status != OK {
				k.undo(i, j, cost)
				*d = Decision{Status: x.d.Status}
				return false
			}
		}
	}
	return changed
}

// counts returns the part of the policy's tally that a shard updates.
func (p *Policy) counts(s *shard) *tallyPart { return &p.tally[s.number%tallyParts] }

// weighBlocked counts a check that an administrative block denies, for Top.
func (s *shard) weighBlocked(h uint64, key []byte, op *Op) {
	if op.counts() {
		s.heavy.Weigh(s.NowNs, h, key, op.Cost, Denied)
	}
}

// firstOfCheck returns the hash of the first entry that a check needs if its key has no override, and the length of the
// entry if it is a bundle. others are the limits whose limiters are further entries.
func (s *shard) firstOfCheck(h uint64, op *Op) (first uint64, bundleLen int, others []int) {
	p := s.policy(op.Text)
	if p == nil {
		return h, 0, nil
	}
	if p.bundleBytes > 0 {
		bundleLen = store.BundleLen(len(p.prefixes[0])+len(op.Key), p.bundleBytes)
	}
	return limiterHash(h, p.hash, 0), bundleLen, p.apart
}

// prefetchOthers loads the limiters of a check that are not in the entry of firstOfCheck.
func (s *shard) prefetchOthers(h uint64, op *Op) {
	p := s.policy(op.Text)
	if p == nil {
		return
	}
	for _, limit := range p.apart {
		if r := s.Index.GroupOf(limiterHash(h, p.hash, limit)).First(); r != 0 {
			s.fetched += s.Slab.Prefetch(r)
		}
	}
}
