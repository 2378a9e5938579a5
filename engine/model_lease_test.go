package engine_test

import (
	"math/big"
	"sort"

	"github.com/weir-project/weir/engine"
)

// leases are units that are held until they are released or expire.
type leases struct {
	limit engine.Limit
	held  []lease
}

type lease struct {
	holder      string
	units       int64
	expiresAtNs int64
}

func (c leases) algorithm() engine.Algorithm { return engine.Concurrency }
func (c leases) remembered() engine.Limit    { return c.limit }
func (c leases) used(at engine.Stamp) int64  { return c.live(at).units() }
func (c leases) idle(at engine.Stamp) bool   { return len(c.live(at).held) == 0 }

// live returns the leases that have not expired, by the order of their expiry.
func (c leases) live(at engine.Stamp) leases {
	live := leases{limit: c.limit}
	for _, l := range c.held {
		if at.NowNs < l.expiresAtNs {
			live.held = append(live.held, l)
		}
	}
	sort.Slice(live.held, func(i, j int) bool { return live.held[i].expiresAtNs < live.held[j].expiresAtNs })
	return live
}

func (c leases) find(holder string, at engine.Stamp) (lease, bool) {
	for _, l := range c.live(at).held {
		if l.holder == holder {
			return l, true
		}
	}
	return lease{}, false
}

func (c leases) without(holder string, at engine.Stamp) leases {
	rest := leases{limit: c.limit}
	for _, l := range c.live(at).held {
		if l.holder != holder {
			rest.held = append(rest.held, l)
		}
	}
	return rest
}

func (c leases) with(l lease) leases {
	return leases{c.limit, append(c.held[:len(c.held):len(c.held)], l)}
}

func (c leases) units() (n int64) {
	for _, l := range c.held {
		n += l.units
	}
	return n
}

func (c leases) take(at engine.Stamp, op *engine.Op) (engine.Decision, rule) {
	c = c.live(at)
	c.limit = op.Limit
	holder, n := string(op.Text), op.Cost
	d := engine.Decision{Allowed: 1, Limit: c.limit.Max}
	held, renewal := c.find(holder, at)
	switch {
	case renewal && n > 0 && n != held.units && op.Asks != engine.Fingerprint{}:
		return engine.Decision{Status: engine.OtherTerms}, nil
	case renewal && n > 0:
		c = c.without(holder, at).with(lease{holder, held.units, untilNs(at, op.TTLNs)})
	case c.units()+n > c.limit.Max:
		n, d.Allowed, d.RetryMs = 0, 0, c.waitMs(at, n)
	case n > 0 && len(c.held) >= engine.MaxHolders:
		return engine.Decision{Status: engine.TooManyHolders}, nil
	case n > 0:
		c = c.with(lease{holder, n, untilNs(at, op.TTLNs)})
	}
	d.Remaining = max(0, c.limit.Max-c.units())
	d.ResetMs = c.resetMs(at)
	return taken(d, n, c)
}

// waitMs returns the time until expiry alone frees n units.
func (c leases) waitMs(at engine.Stamp, n int64) int64 {
	used := c.units()
	for _, l := range c.held {
		if l.expiresAtNs == engine.Never {
			break
		}
		if used -= l.units; used+n <= c.limit.Max {
			return msUp(num(l.expiresAtNs - at.NowNs))
		}
	}
	return -1
}

func (c leases) resetMs(at engine.Stamp) (ms int64) {
	for _, l := range c.held {
		if l.expiresAtNs == engine.Never {
			return -1
		}
		ms = max(ms, msUp(num(l.expiresAtNs-at.NowNs)))
	}
	return ms
}

func (c leases) refund(engine.Stamp, int64) (engine.Decision, rule) {
	panic("leases are released, not refunded")
}

// counter is a plain value with a time to live.
type counter struct {
	value   int64
	untilNs int64 // Never if it does not end
}

func (c *counter) expired(at engine.Stamp) bool { return at.NowNs >= c.untilNs }

func (s *modelState) incr(at engine.Stamp, op *engine.Op) (engine.Decision, bool) {
	if a := s.algorithm(); a != engine.NoAlgorithm && a != engine.Counter {
		return engine.Decision{Status: engine.WrongType}, false
	}
	c := counter{untilNs: engine.Never}
	if s.counter != nil {
		c = *s.counter
	}
	by := op.Incr
	if by.By > 0 && s.blocked(at) {
		return engine.Decision{Remaining: c.value}, false
	}
	sum := new(big.Int).Add(big.NewInt(c.value), big.NewInt(by.By))
	if low, high := big.NewInt(by.Lower), big.NewInt(by.Upper); sum.Cmp(low) < 0 || sum.Cmp(high) > 0 {
		if !by.Saturate {
			return engine.Decision{Remaining: c.value}, false
		}
		if sum.Cmp(high) > 0 {
			sum = high
		} else {
			sum = low
		}
	}
	delta := new(big.Int).Sub(sum, big.NewInt(c.value))
	if !delta.IsInt64() {
		return engine.Decision{Status: engine.Overflow}, false
	}
	c.value = sum.Int64()
	switch {
	case by.Expire == engine.ExpireNone:
		c.untilNs = engine.Never
	case by.Expire == engine.ExpireIn && !(by.OnlyIfNew && c.untilNs != engine.Never):
		c.untilNs = at.NowNs + by.ExpireNs
	}
	s.counter = &c
	return engine.Decision{Allowed: delta.Int64(), Remaining: c.value}, true
}
