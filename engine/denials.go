package engine

// Denials decides, against the table as it stands, which of ops would be denied
// without changing anything, and answers those: denied[i] is true, out[i] is what
// Decide would have answered, and the denial is counted. For all others denied[i] is
// false and out[i] means nothing. It returns how many were denied. out and denied are
// at least as long as ops.
//
// A replica that leads may answer these from what it has applied, with no entry in
// the log. So nothing may be left behind that a later decision could see: not by an
// operation (one with an ID, one that would put another limit in force, a strike that
// counts is never answered here), nor by the stamp, which may be ahead of that of the
// next Decide. An operation that has an earlier one on its key in the same call which
// is not answered here is not answered either: it must come after it.
func (t *Table) Denials(at Stamp, ops []Op, out []Decision, denied []bool) (n int) {
	var held turn
	defer held.leave()
	var waiting keySet
	policiesWait := false // behind a change of one
	for i := range ops {
		denied[i] = false
		if ops[i].Code == OpCheck || ops[i].Code == OpPolicy || ops[i].Code >= OpReserve {
			if policiesWait || !t.deniesCheck(at, &ops[i], &out[i], &held, &waiting) {
				t.await(&waiting, &ops[i])
				// A hold is settled on keys that are not known here.
				policiesWait = policiesWait || ops[i].Code != OpCheck && ops[i].Code != OpReserve
				continue
			}
			denied[i] = true
			n++
			continue
		}
		h, s := t.find(ops[i].Key)
		if Reserved(ops[i].Key) { // a check on its key must come after
			h = t.hashKey(homeOf(ops[i].Key))
		}
		if waiting.has(h) {
			continue
		}
		if !ops[i].mayBeDenial() {
			waiting.add(h)
			continue
		}
		if held.enter(s) {
			s.look(at)
		}
		if !s.denies(h, &ops[i], &out[i]) {
			waiting.add(h)
			continue
		}
		s.counts.count(ops[i].Limit.Algorithm, false)
		s.weigh(&cell{hash: h, key: ops[i].Key}, ops[i].Cost, Denied)
		denied[i] = true
		n++
	}
	return n
}

// mayBeDenial reports whether an operation can be denied and leave no trace.
func (op *Op) mayBeDenial() bool {
	return (op.Code == OpTake || op.Code == OpCheck) && op.counts() && len(op.ID) == 0
}

// keySet is a set of keys by their hashes; it may also have keys that were not added.
type keySet [64]uint64

// place takes bits of a hash which choose neither shard nor segment of small tables.
func (k *keySet) place(h uint64) (word *uint64, bit uint64) {
	return &k[h>>26%64], 1 << (h >> 20 % 64)
}

func (k *keySet) add(h uint64) {
	word, bit := k.place(h)
	*word |= bit
}

func (k *keySet) has(h uint64) bool {
	word, bit := k.place(h)
	return *word&bit != 0
}

// denies reports whether a shard that is looked at denies a take and stays as it is.
func (s *shard) denies(h uint64, op *Op, d *Decision) bool {
	c := cell{hash: h, key: op.Key}
	s.open(&c)
	if c.live && c.e.kind() != uint8(op.Limit.Algorithm) {
		return false
	}
	blocked := s.isBlocked(&c)
	if !blocked && s.fits(&c, op) || s.forgets(&c) {
		return false
	}
	*d = Decision{}
	if blocked {
		return s.denyBlocked(&c, op, d)
	}
	look := *op
	look.Dry = true
	s.take(&c, &look, d)
	return d.Status == OK && d.Allowed == 0 && !s.adopts(&c, op, d)
}

// fits reports whether a take is surely not a denial without trace, at little cost;
// false leaves it open.
func (s *shard) fits(c *cell, op *Op) bool {
	left := op.Limit.Max - op.want()
	if !c.live {
		return left >= 0 || op.Limit.Algorithm == Strike
	}
	st := c.e.state()
	switch op.Limit.Algorithm {
	case TokenBucket, LeakyBucket:
		r := op.Limit.Rate
		return left >= 0 && *s.limits.at(c.e.limit()) == op.Limit &&
			!r.grains(left).less(deficitAt(c.e.bucket(), r, s.nowNs))
	case FixedWindow:
		return readFixed(st).used <= left
	case SlidingCounter:
		w := readSlidingCounter(st)
		return w.prev+w.cur <= left
	case SlidingLog:
		return readLog(st).units <= left
	case Concurrency:
		return readLeases(st).units <= left
	case Strike:
		return strikeBlockedNs(st) <= s.nowNs
	}
	return false
}

// forgets reports whether a decision would first forget a good part of a log. That is
// left to it: a look would go through the whole part again each time.
func (s *shard) forgets(c *cell) bool {
	if !c.live || c.e.kind() != uint8(SlidingLog) && c.e.kind() != uint8(Strike) {
		return false
	}
	log := readLog(c.e.state())
	return log.stale(&s.slab, s.nowNs-s.limits.at(c.e.limit()).WindowNs)
}
