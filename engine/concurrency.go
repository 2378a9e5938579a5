package engine

import "github.com/weir-project/weir/engine/internal/leases"

// openLeases reads the leases of a live entry and forgets what has expired.
func (s *shard) openLeases(c *cell) (set leases.Set) {
	if !c.live {
		return leases.Set{}
	}
	set = leases.Read(c.e.state())
	if s.looking {
		set.Hide(&s.slab, s.nowNs)
		return set
	}
	set.Sweep(&s.slab, s.nowNs)
	set.Write(c.e.state())
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
	at, renewal := leases.Place{}, false
	if op.Cost > 0 {
		_, at, renewal = set.Find(&s.slab, op.Text)
	}
	growth := set.Growth(&s.slab, op.Text)
	grant, ok := admit(op, set.Units, d)
	if renewal {
		ok, growth = true, 0
		d.Allowed, d.Remaining = 1, max(op.Limit.Max-set.Units, 0)
	} else if grant > 0 && set.Count >= MaxHolders {
		*d = Decision{Status: TooManyHolders}
		return false
	}
	taken := ok && op.Cost > 0
	lastNs, endNs := set.LastExpiryNs(&s.slab, at), s.leaseEndNs(op.TTLNs)
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
		set.Renew(&s.slab, at, endNs)
	} else {
		set.Add(&s.slab, leases.Lease{ExpiresNs: endNs, Units: op.Cost, ID: op.Text})
	}
	set.Write(c.e.state())
	c.relink = true
	s.touched(c)
	return true
}

// leaseRetryMs is the time until enough leases have expired.
func (s *shard) leaseRetryMs(set *leases.Set, op *Op) int64 {
	if !op.canFit() {
		return -1
	}
	return s.spanMs(set.FreeAtNs(&s.slab, set.Units+op.want()-op.Limit.Max))
}

func (s *shard) releaseLease(c *cell, op *Op, d *Decision) bool {
	set := s.openLeases(c)
	_, at, ok := set.Find(&s.slab, op.Text)
	if !ok {
		return false
	}
	d.Allowed = 1
	set.Remove(&s.slab, at)
	set.Write(c.e.state())
	s.settled(c)
	return true
}

func (s *shard) renewLease(c *cell, op *Op, d *Decision) bool {
	set := s.openLeases(c)
	_, at, ok := set.Find(&s.slab, op.Text)
	if !ok {
		return false
	}
	d.Allowed = 1
	set.Renew(&s.slab, at, s.leaseEndNs(op.TTLNs))
	set.Write(c.e.state())
	s.settled(c)
	return true
}
