package engine

// openLeases reads the leases of a live entry and forgets what has expired.
func (s *shard) openLeases(c *cell) (set leaseSet) {
	if !c.live {
		return leaseSet{}
	}
	set = readLeases(c.e.state())
	if s.looking {
		set.hide(&s.slab, s.nowNs)
		return set
	}
	set.sweep(&s.slab, s.nowNs)
	set.write(c.e.state())
	return set
}

// leaseEndNs is when a lease taken now ends; a ttl of zero means never.
func (s *shard) leaseEndNs(ttlNs int64) int64 {
	if ttlNs == 0 {
		return Never
	}
	return s.nowNs + ttlNs
}

func (s *shard) takeLease(c *cell, op *Op, d *Decision) bool {
	set := s.openLeases(c)
	at, renewal := leasePlace{}, false
	if op.Cost > 0 {
		_, at, renewal = set.find(&s.slab, op.Text)
	}
	growth := set.growth(&s.slab, op.Text)
	grant, ok := admit(op, set.units, d)
	if renewal {
		ok, growth = true, 0
		d.Allowed, d.Remaining = 1, max(op.Limit.Max-set.units, 0)
	} else if grant > 0 && set.count >= MaxHolders {
		*d = Decision{Status: TooManyHolders}
		return false
	}
	taken := ok && op.Cost > 0
	lastNs, endNs := set.lastExpiryNs(&s.slab, at), s.leaseEndNs(op.TTLNs)
	if taken {
		lastNs = max(lastNs, endNs)
	} else if !ok {
		d.RetryMs = s.leaseRetryMs(&set, op)
	}
	d.ResetMs = s.spanMs(lastNs)
	if !taken || op.Dry || !s.hold(c, op, d, growth) {
		return false
	}
	if renewal {
		set.renew(&s.slab, at, endNs)
	} else {
		set.add(&s.slab, lease{expiresNs: endNs, units: op.Cost, id: op.Text})
	}
	set.write(c.e.state())
	c.relink = true
	s.touched(c)
	return true
}

// leaseRetryMs is the time until enough leases have expired.
func (s *shard) leaseRetryMs(set *leaseSet, op *Op) int64 {
	if !op.canFit() {
		return -1
	}
	return s.spanMs(set.freeAtNs(&s.slab, set.units+op.want()-op.Limit.Max))
}

func (s *shard) releaseLease(c *cell, op *Op, d *Decision) bool {
	set := s.openLeases(c)
	_, at, ok := set.find(&s.slab, op.Text)
	if !ok {
		return false
	}
	d.Allowed = 1
	set.remove(&s.slab, at)
	set.write(c.e.state())
	s.settled(c)
	return true
}

func (s *shard) renewLease(c *cell, op *Op, d *Decision) bool {
	set := s.openLeases(c)
	_, at, ok := set.find(&s.slab, op.Text)
	if !ok {
		return false
	}
	d.Allowed = 1
	set.renew(&s.slab, at, s.leaseEndNs(op.TTLNs))
	set.write(c.e.state())
	s.settled(c)
	return true
}
