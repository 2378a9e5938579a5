package engine

import (
	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/store"
	"github.com/weir-project/weir/engine/internal/unitlog"
)

// strike is the effect of one take on a strike limiter.
type strike struct {
	blocked            bool  // a penalty runs already
	counted            bool  // the take counts
	was, count         int64 // strikes in the window before and after the take
	newestNs           int64 // the time of the newest strike
	untilNs            int64 // the end of the last penalty, which may have passed; 0: none
	penaltyNs, delayNs int64 // the penalty and the delay that the take begins, 0 for none
	lockedOut          bool  // the take begins the penalty of the last step
}

func (s *shard) takeStrike(c *store.Cell, op *Op, d *Decision) bool {
	l := &op.Limit
	var x strike
	if c.Live {
		x.untilNs = store.StrikeBlockedNs(c.Entry.State())
	}
	log, was := openLog(&s.Store, c, l.WindowNs)
	x.was, x.count, x.newestNs = was, was, log.LastNs
	x.blocked = x.untilNs > s.NowNs
	if x.counted = op.Cost > 0 && (!x.blocked || l.Strikes&Extend != 0); x.counted {
		x.add(l, op.Cost, s.NowNs)
	}
	x.answer(l, s.NowNs, d)
	if !x.counted || op.Dry {
		if x.blocked {
			putInForce(&s.Store, c, op, d)
		}
		return false
	}
	units, answer := min(op.Cost, MaxLogUnits), *d
	if !ensureLimiter(&s.Store, c, op, d, log.Growth(&s.Slab, s.NowNs, units)) {
		if x.blocked { // denied in any case
			*d = answer
		}
		return false
	}
	recordUnits(&s.Store, c, l.WindowNs, units)
	if x.blocked { // the newest Max strikes reach the last step, so older strikes have no effect
		keepNewest(&s.Store, c, l.Max)
	}
	s.countStrike(&x, units)
	d.Locked = uint16(arith.OneIf(x.lockedOut))
	store.SetStrikeBlocked(c.Entry.State(), x.untilNs)
	s.Touched(c)
	return true
}

// add counts strikes and computes the penalty that they begin.
func (x *strike) add(l *Limit, units, nowNs int64) {
	x.newestNs, x.count = nowNs, min(x.was+units, MaxLogUnits)
	var last bool
	x.penaltyNs, last, x.delayNs = l.Steps.Reached(x.was, x.count, x.blocked)
	if x.penaltyNs > 0 {
		x.untilNs = max(x.untilNs, nowNs+x.penaltyNs)
	}
	x.lockedOut = last && (!x.blocked || x.was < l.Max)
}

func (x *strike) answer(l *Limit, nowNs int64, d *Decision) {
	blockedFor := max(x.untilNs-nowNs, 0)
	if d.Allowed = arith.OneIf(blockedFor == 0 || !x.blocked && l.Strikes&Attempts != 0); d.Allowed > 0 {
		d.RetryMs = arith.NsToMs(x.delayNs)
	} else {
		d.RetryMs = arith.NsToMs(blockedFor)
	}
	d.Remaining = max(l.Max-x.count, 0)
	d.Limit = l.Max
	if x.count > 0 {
		blockedFor = max(blockedFor, x.newestNs+l.WindowNs-nowNs)
	}
	d.ResetMs = arith.NsToMs(blockedFor)
}

// countStrike counts the strikes of a take in the shard's statistics. A take during a penalty counts no delay. It
// counts as another penalty only if it begins the penalty of the last step (a lockout).
func (s *shard) countStrike(x *strike, units int64) {
	n := &s.decided
	n.strikes += units
	n.delays += arith.OneIf(x.delayNs > 0 && !x.blocked)
	n.penalties += arith.OneIf(x.penaltyNs > 0 && (!x.blocked || x.lockedOut))
	n.lockouts += arith.OneIf(x.lockedOut)
}

// extends reports whether a take counts and restarts the running penalty even if it is denied.
func (op *Op) extends() bool {
	return op.Limit.Algorithm == Strike && op.Limit.Strikes&Extend != 0 && op.Cost > 0
}

// forgive carries out an OpForgive. If one of its policies does not exist, it changes nothing.
func (s *shard) forgive(op *Op, d *Decision) bool {
	if !s.knows(op, d) {
		return false
	}
	for i := 0; ; i++ {
		pair, more := op.pair(i)
		if !more {
			return d.Allowed > 0
		}
		h, at := s.t.find(pair.Key)
		d.Allowed += at.forgiveKey(h, s.policy(pair.Policy), pair.Key)
	}
}

// knows reports whether all policies of an operation exist. Otherwise it fills in the answer.
func (s *shard) knows(op *Op, d *Decision) bool {
	for i := 0; ; i++ {
		pair, more := op.pair(i)
		if !more {
			return true
		}
		if s.policy(pair.Policy) == nil {
			*d = Decision{Status: UnknownPolicy, Pair: uint8(i)}
			return false
		}
	}
}

// forgiveKey removes the strikes and penalties of a policy for a key with hash h. It returns how many limiters
// it reset.
func (s *shard) forgiveKey(h uint64, p *Policy, key []byte) (forgiven int64) {
	s.flushForgotten() // a policy change in the same atomic step may have recorded forgotten usage
	for i := range p.most() {
		c := store.Cell{Hash: limiterHash(h, p.hash, i), Key: p.NameOf(i, key)}
		s.Open(&c)
		if s.catchUp(&c); !c.Live || c.Entry.Kind() != uint8(Strike) {
			continue
		}
		s.countSuccess(c.Entry)
		s.Drop(&c)
		forgiven++
	}
	return forgiven
}

// countSuccess counts a successful attempt, just before its limiter is removed. The newest strikes of the
// limiter belong to this attempt.
func (s *shard) countSuccess(e store.Entry) {
	if e.Kind() == uint8(Strike) && s.Limits.At(e.Limit()).Strikes&Attempts != 0 {
		log := unitlog.Read(e.State())
		s.decided.successes += log.Newest(&s.Slab)
	}
}
