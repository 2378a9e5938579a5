package engine

import (
	"github.com/weir-project/weir/engine/internal/leases"
	"github.com/weir-project/weir/engine/internal/store"
)

// openLeases returns the leases of a live entry that have not expired. It removes the expired leases from the
// entry, unless it runs within a look.
func openLeases(s *store.Store, c *store.Cell) (set leases.Set) {
	if !c.Live {
		return leases.Set{}
	}
	set = leases.Read(c.Entry.State())
	if s.Looking {
		set.Hide(&s.Slab, s.NowNs)
		return set
	}
	set.Sweep(&s.Slab, s.NowNs)
	set.Write(c.Entry.State())
	return set
}

// leaseEndNs returns when a lease taken now ends. A ttl of zero means never.
func leaseEndNs(s *store.Store, ttlNs int64) int64 {
	if ttlNs == 0 {
		return Never
	}
	return s.NowNs + ttlNs
}

func takeLease(s *store.Store, c *store.Cell, op *Op, d *Decision) bool {
	set := openLeases(s, c)
	at, renewal := leases.Place{}, false
	if op.Cost > 0 {
		var held leases.Lease
		held, at, renewal = set.Find(&s.Slab, op.Text)
		if renewal && held.Units != op.Cost && op.bound() {
			*d = otherLease(held.Units)
			return false
		}
	}
	growth := set.Growth(&s.Slab, op.Text)
	grant, ok := admit(op, set.Units, d)
	if renewal {
		ok, growth = true, 0
		d.Allowed, d.Remaining = 1, max(op.Limit.Max-set.Units, 0)
	} else if grant > 0 && set.Count >= MaxHolders {
		*d = Decision{Status: TooManyHolders}
		return false
	}
	taken := ok && op.Cost > 0
	lastNs, endNs := set.LastExpiryNs(&s.Slab, at), leaseEndNs(s, op.TTLNs)
	if taken {
		lastNs = max(lastNs, endNs)
	} else if !ok {
		d.RetryMs = leaseRetryMs(s, &set, op)
	}
	d.ResetMs = s.SpanMs(lastNs)
	if !taken || op.Dry || !ensureLimiter(s, c, op, d, growth) {
		return false
	}
	if renewal {
		set.Renew(&s.Slab, at, endNs)
	} else {
		set.Add(&s.Slab, leases.Lease{ExpiresNs: endNs, Units: op.Cost, ID: op.Text})
	}
	set.Write(c.Entry.State())
	c.Relink = true
	s.Touched(c)
	return true
}

// leaseRetryMs returns the time until enough leases have expired for the operation to fit.
func leaseRetryMs(s *store.Store, set *leases.Set, op *Op) int64 {
	if !op.canFit() {
		return -1
	}
	return s.SpanMs(set.FreeAtNs(&s.Slab, set.Units+op.want()-op.Limit.Max))
}

func releaseLease(s *store.Store, c *store.Cell, op *Op, d *Decision) bool {
	set := openLeases(s, c)
	_, at, ok := set.Find(&s.Slab, op.Text)
	if !ok {
		return false
	}
	d.Allowed = 1
	set.Remove(&s.Slab, at)
	set.Write(c.Entry.State())
	s.Reduced(c)
	return true
}

func renewLease(s *store.Store, c *store.Cell, op *Op, d *Decision) bool {
	set := openLeases(s, c)
	_, at, ok := set.Find(&s.Slab, op.Text)
	if !ok {
		return false
	}
	d.Allowed = 1
	set.Renew(&s.Slab, at, leaseEndNs(s, op.TTLNs))
	set.Write(c.Entry.State())
	s.Reduced(c)
	return true
}
