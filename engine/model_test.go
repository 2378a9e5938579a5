package engine_test

import (
	"math"
	"math/big"
	"strings"

	"github.com/weir-project/weir/engine"
)

// This is the reference model: a map of simple limiters in exact rational numbers. Each is a few lines that follow
// the written definition of its algorithm. It is slow, keeps everything, and shares no code with the engine.

// rule is the state of one limiter. Its values never change. An operation that takes something returns the next
// state, and any other returns nil.
type rule interface {
	algorithm() engine.Algorithm
	// idle reports whether the limiter equals an unused one, under its remembered limit.
	idle(at engine.Stamp) bool
	take(at engine.Stamp, op *engine.Op) (engine.Decision, rule)
	// refund returns at most n units to the limiter.
	refund(at engine.Stamp, n int64) (engine.Decision, rule)
	// remembered returns the limit of the last operation that took something.
	remembered() engine.Limit
	// used returns the units that count against that limit, rounded up.
	used(at engine.Stamp) int64
}

// blank returns an unused limiter under limit l.
func blank(at engine.Stamp, l engine.Limit) rule {
	switch l.Algorithm {
	case engine.TokenBucket:
		return tokens{limit: l, level: num(l.Max), atNs: at.NowNs}
	case engine.LeakyBucket:
		return queue{limit: l, backlog: num(0), atNs: at.NowNs}
	case engine.FixedWindow:
		return fixed{}
	case engine.SlidingLog:
		return slidingLog{limit: l}
	case engine.SlidingCounter:
		return twoWindows{limit: l, startNs: alignedStart(at, l.WindowNs)}
	case engine.Concurrency:
		return leases{limit: l}
	case engine.Strike:
		return strikes{limit: l}
	}
	panic("no such algorithm")
}

// model is the simple table.
type model struct {
	idLifetimeNs int64
	nowNs        int64
	keys         map[string]*modelKey
}

type modelKey struct {
	state modelState
	ids   map[string]remembered
}

// modelState is everything except remembered answers. It is copied, changed and kept.
type modelState struct {
	rule      rule
	counter   *counter
	own, all  modelBlock // of the key alone, and everywhere
	elsewhere elsewhere  // computed again for each operation
}

type modelBlock struct {
	untilNs int64
	reason  string
}

func (b modelBlock) inForce(at engine.Stamp) bool { return at.NowNs < b.untilNs }

// elsewhere is the block everywhere on another key that covers this key.
type elsewhere struct {
	untilNs     int64
	key, reason string
}

func endsIn(key, end string) bool { return key == end || strings.HasSuffix(key, "|"+end) }

// elsewhere returns the block that lasts longest among those that cover this key, or the address of the operation.
func (m *model) elsewhere(at engine.Stamp, key, from string) (found elsewhere) {
	for other, k := range m.keys {
		s := &k.state
		reached := other == from || endsIn(key, other) || endsIn(key, strings.TrimPrefix(other, "ip:"))
		if !s.all.inForce(at) || !reached {
			continue
		}
		if s.all.untilNs > found.untilNs || s.all.untilNs == found.untilNs && other > found.key {
			found = elsewhere{s.all.untilNs, other, s.all.reason}
		}
	}
	return found
}

type remembered struct {
	asks    string // what the request asks for; empty: the ID is not bound to it
	answer  engine.Decision
	givenNs int64
}

func newModel(idLifetimeNs int64) *model {
	return &model{idLifetimeNs: idLifetimeNs, keys: map[string]*modelKey{}}
}

// do runs one operation.
func (m *model) do(at engine.Stamp, op *engine.Op) engine.Decision {
	m.nowNs = max(m.nowNs, at.NowNs)
	at.NowNs = m.nowNs
	k := m.keys[string(op.Key)]
	if k == nil {
		k = &modelKey{ids: map[string]remembered{}}
		m.keys[string(op.Key)] = k
	}
	remembers := len(op.ID) > 0 && !op.Dry // a dry run is not a repetition
	asks := asksOf(op)
	if r, ok := k.ids[string(op.ID)]; ok && remembers && at.NowNs-r.givenNs < m.idLifetimeNs {
		if asks != r.asks && asks != "" && r.asks != "" {
			return engine.Decision{Status: engine.OtherTerms}
		}
		return r.answer
	}
	next := k.state.withoutIdle(at)
	next.elsewhere = m.elsewhere(at, string(op.Key), string(op.From))
	answer, changed := next.do(at, op)
	if op.Dry {
		return answer
	}
	k.state = next
	if asks != "" { // neither errors nor decisions that took nothing are remembered
		struck := op.Limit.Algorithm == engine.Strike && changed
		took := op.Code != engine.OpTake || answer.Allowed > 0 && op.Cost > 0 || struck
		remembers = remembers && answer.Status == engine.OK && took
	}
	if remembers {
		again := answer
		again.Locked = 0 // the lock-out was reported already
		k.ids[string(op.ID)] = remembered{asks, again, at.NowNs}
	}
	return answer
}

// asksOf describes what an operation asks for, if its ID is bound to that. The address that it comes from and the
// window that it came in are no part of it.
func asksOf(op *engine.Op) string {
	if op.Asks == (engine.Fingerprint{}) {
		return ""
	}
	o := *op
	o.ID, o.From, o.Calendar = nil, nil, nil
	return describe(o)
}

// len returns the number of keys that are not idle.
func (m *model) len(at engine.Stamp) (n int64) {
	at.NowNs = max(m.nowNs, at.NowNs)
	for _, k := range m.keys {
		s := k.state.withoutIdle(at)
		if s.algorithm() != engine.NoAlgorithm || s.blockedItself(at) {
			n++
		}
	}
	return n
}

// inspect describes a key like a read under its own limit.
func (m *model) inspect(at engine.Stamp, key []byte) (info engine.Info, ok bool) {
	at.NowNs = max(m.nowNs, at.NowNs)
	s := m.keys[string(key)].state.withoutIdle(at)
	if s.blockedItself(at) {
		last := s.own
		if s.all.untilNs >= s.own.untilNs {
			last = s.all
		}
		info.Blocked, info.Reason, info.BlockedMs = true, last.reason, leftMs(at, last.untilNs)
		info.BlockedBy, info.Everywhere = string(key), s.all.inForce(at)
	}
	own := info.Blocked
	if x := m.elsewhere(at, string(key), ""); x.untilNs > 0 && (!own || x.untilNs > s.blockedUntilNs()) {
		info.Blocked, info.Reason, info.BlockedMs, info.BlockedBy = true, x.reason, leftMs(at, x.untilNs), x.key
	}
	info.Algorithm = s.algorithm()
	switch {
	case s.rule != nil:
		info.Limit = s.rule.remembered()
		now := look(at, s.rule)
		info.Remaining, info.IdleInMs = now.Remaining, now.ResetMs
		info.Used = s.rule.used(at)
	case s.counter != nil:
		info.Used, info.IdleInMs = s.counter.value, -1
		if s.counter.untilNs != engine.Never {
			info.IdleInMs = msUp(num(s.counter.untilNs - at.NowNs))
		}
	}
	switch r := s.rule.(type) {
	case tokens:
		info.Tokens, info.AtMs = r.text(at), (max(m.nowNs, at.NowNs)+at.WallOffsetNs)/1e6
	case leases:
		info.Holders = len(r.live(at).held)
	case strikes:
		info.PenaltyMs = msUp(num(max(0, r.blockedUntilNs-at.NowNs)))
	}
	return info, own || info.Algorithm != engine.NoAlgorithm
}

// withoutIdle returns s without idle parts.
func (s modelState) withoutIdle(at engine.Stamp) modelState {
	if s.rule != nil && s.rule.idle(at) {
		s.rule = nil
	}
	if s.counter != nil && s.counter.expired(at) {
		s.counter = nil
	}
	return s
}

func (s *modelState) algorithm() engine.Algorithm {
	switch {
	case s.rule != nil:
		return s.rule.algorithm()
	case s.counter != nil:
		return engine.Counter
	}
	return engine.NoAlgorithm
}

func (s *modelState) blockedUntilNs() int64 { return max(s.own.untilNs, s.all.untilNs) }

func (s *modelState) blockedItself(at engine.Stamp) bool { return at.NowNs < s.blockedUntilNs() }

func (s *modelState) blocked(at engine.Stamp) bool { return at.NowNs < s.endsNs() }

// endsNs returns when the last block that covers the key ends.
func (s *modelState) endsNs() int64 { return max(s.blockedUntilNs(), s.elsewhere.untilNs) }

func leftMs(at engine.Stamp, untilNs int64) int64 {
	if untilNs == engine.Never {
		return -1
	}
	return msUp(num(untilNs - at.NowNs))
}

// do runs op on s, and reports whether anything changed.
func (s *modelState) do(at engine.Stamp, op *engine.Op) (engine.Decision, bool) {
	switch op.Code {
	case engine.OpTake:
		return s.take(at, op)
	case engine.OpBlock, engine.OpBlockEverywhere:
		b, before := modelBlock{engine.Never, string(op.Text)}, int64(0)
		if op.TTLNs != engine.Never {
			b.untilNs = at.NowNs + op.TTLNs
		}
		if op.Code == engine.OpBlock {
			if !op.Keep || b.untilNs > s.own.untilNs {
				s.own = b
			}
		} else {
			before, s.all = one(s.all.inForce(at)), b
		}
		return engine.Decision{Allowed: 1, Remaining: before}, true
	case engine.OpUnblock:
		was := s.blockedItself(at)
		s.own, s.all = modelBlock{}, modelBlock{}
		return engine.Decision{Allowed: one(was)}, was
	case engine.OpReset, engine.OpForget:
		was := s.algorithm() != engine.NoAlgorithm
		s.rule, s.counter = nil, nil
		return engine.Decision{Allowed: one(was)}, was
	case engine.OpIncr:
		return s.incr(at, op)
	case engine.OpRefund:
		return s.refund(at, op)
	case engine.OpRelease, engine.OpRenew:
		return s.lease(at, op)
	}
	panic("no such operation")
}

func (s *modelState) take(at engine.Stamp, op *engine.Op) (engine.Decision, bool) {
	own := s.algorithm()
	if own != engine.NoAlgorithm && own != op.Limit.Algorithm {
		return engine.Decision{Status: engine.WrongType}, false
	}
	r := s.rule
	if r == nil {
		r = blank(at, op.Limit)
	}
	if s.blocked(at) {
		return s.denyBlocked(at, op, r), false
	}
	d, next := r.take(at, op)
	if next == nil {
		if d.Allowed == 0 && op.Cost > 0 {
			s.adopt(at, op, d)
		}
		return d, false
	}
	s.rule = next
	return d, true
}

// adopt puts the limit of a denied request in force, if the request can ever fit.
func (s *modelState) adopt(at engine.Stamp, op *engine.Op, denied engine.Decision) {
	limit := op.Limit
	// A lifetime quota has no wait, but a refund may let the request fit.
	fits := denied.RetryMs >= 0 || wanted(op) <= limit.Max
	if s.rule == nil || !fits {
		return
	}
	switch r := s.rule.(type) {
	case tokens:
		s.rule = r.under(at, limit)
	case queue:
		s.rule = r.under(at, limit)
	case fixed:
		s.rule = r.under(at, op)
	case twoWindows:
		s.rule = r.under(at, limit)
	case slidingLog:
		s.rule = r.under(at, limit)
	case strikes:
		s.rule = r.under(at, limit)
	}
}

// denyBlocked answers a decision on a blocked key. The key is idle when both the block is over and the limiter is
// idle under the operation's limit.
func (s *modelState) denyBlocked(at engine.Stamp, op *engine.Op, r rule) engine.Decision {
	own, _ := r.take(at, &engine.Op{Limit: op.Limit, Calendar: op.Calendar})
	left := leftMs(at, s.endsNs())
	d := engine.Decision{RetryMs: left, ResetMs: later(left, own.ResetMs), Limit: op.Limit.Max, Part: engine.NoPart}
	if left < 0 {
		return d
	}
	then, asked := at, *op
	if then.NowNs += left * 1e6; op.Limit.Algorithm == engine.Strike { // only a running penalty denies
		asked.Cost = 0
	}
	next := s.withoutIdle(then).rule
	if next == nil {
		next = blank(then, op.Limit)
	}
	if behind, _ := next.take(then, &asked); behind.Status == engine.OK && behind.Allowed == 0 {
		d.RetryMs = after(left, behind.RetryMs)
		d.ResetMs = later(d.ResetMs, max(d.RetryMs, 0))
	}
	return d
}

// after adds a wait to a first wait. Negative means never.
func after(first, wait int64) int64 {
	if wait < 0 {
		return -1
	}
	return first + wait
}

// look returns the answer of COST 0 under the limiter's own limit.
func look(at engine.Stamp, r rule) engine.Decision {
	d, _ := r.take(at, &engine.Op{Limit: r.remembered()})
	return d
}

// later returns the longer of two waits, of which -1 never ends.
func later(a, b int64) int64 {
	if a < 0 || b < 0 {
		return -1
	}
	return max(a, b)
}

func (s *modelState) refund(at engine.Stamp, op *engine.Op) (engine.Decision, bool) {
	switch s.algorithm() {
	case engine.NoAlgorithm:
		return engine.Decision{Remaining: -1}, false
	case engine.Concurrency, engine.Counter:
		return engine.Decision{Status: engine.NotRefundable}, false
	}
	d, next := s.rule.refund(at, op.Cost)
	if next == nil {
		return d, false
	}
	s.rule = next
	return d, true
}

func (s *modelState) lease(at engine.Stamp, op *engine.Op) (engine.Decision, bool) {
	switch s.algorithm() {
	case engine.NoAlgorithm:
		return engine.Decision{}, false
	case engine.Concurrency:
	default:
		return engine.Decision{Status: engine.WrongType}, false
	}
	next := s.rule.(leases).without(string(op.Text), at)
	held, found := s.rule.(leases).find(string(op.Text), at)
	if !found {
		return engine.Decision{}, false
	}
	if op.Code == engine.OpRenew {
		next = next.with(lease{held.holder, held.units, untilNs(at, op.TTLNs)})
	}
	s.rule = next
	return engine.Decision{Allowed: 1}, true
}

// afterRefund returns the answer to a refund of n units: what a look under the remembered limit would report as left.
func afterRefund(at engine.Stamp, n int64, after rule) (engine.Decision, rule) {
	d := engine.Decision{Allowed: one(n > 0), Remaining: look(at, after).Remaining}
	return taken(d, n, after)
}

// These functions are exact arithmetic. A name for each step keeps the definitions readable.

func num(n int64) *big.Rat           { return new(big.Rat).SetInt64(n) }
func frac(a, b int64) *big.Rat       { return big.NewRat(a, b) }
func plus(a, b *big.Rat) *big.Rat    { return new(big.Rat).Add(a, b) }
func minus(a, b *big.Rat) *big.Rat   { return new(big.Rat).Sub(a, b) }
func times(a, b *big.Rat) *big.Rat   { return new(big.Rat).Mul(a, b) }
func over(a, b *big.Rat) *big.Rat    { return new(big.Rat).Quo(a, b) }
func perNs(r engine.Rate) *big.Rat   { return frac(r.Units, r.PerNs) }
func lessOrEqual(a, b *big.Rat) bool { return a.Cmp(b) <= 0 }
func positive(a *big.Rat) *big.Rat   { return greater(a, new(big.Rat)) }
func negative(a *big.Rat) *big.Rat   { return new(big.Rat).Neg(a) }
func ceil(a *big.Rat) *big.Int       { return new(big.Int).Neg(floor(negative(a))) }
func one(yes bool) int64             { return map[bool]int64{true: 1}[yes] }
func msUp(ns *big.Rat) int64         { return saturated(ceil(over(positive(ns), num(1e6)))) }
func wholeUp(a *big.Rat) int64       { return saturated(ceil(positive(a))) }
func whole(a *big.Rat) int64         { return saturated(floor(positive(a))) }
func floorTo(a *big.Rat, n int64) *big.Rat {
	return over(new(big.Rat).SetInt(floor(times(a, num(n)))), num(n))
}

func floor(a *big.Rat) *big.Int {
	// Euclidean division rounds down for a positive divisor.
	return new(big.Int).Div(a.Num(), a.Denom())
}

func lesser(a, b *big.Rat) *big.Rat {
	if lessOrEqual(a, b) {
		return a
	}
	return b
}

func greater(a, b *big.Rat) *big.Rat {
	if lessOrEqual(a, b) {
		return b
	}
	return a
}

func saturated(a *big.Int) int64 {
	if !a.IsInt64() {
		return math.MaxInt64
	}
	return a.Int64()
}

// untilNs returns when a time to live from now ends. A time to live of 0 never ends.
func untilNs(at engine.Stamp, ttlNs int64) int64 {
	if ttlNs == 0 {
		return engine.Never
	}
	return at.NowNs + ttlNs
}

// alignedStart returns the limiter time at which the current wall-clock window began.
func alignedStart(at engine.Stamp, windowNs int64) int64 {
	wallNs := at.NowNs + at.WallOffsetNs
	return wallNs - wallNs%windowNs - at.WallOffsetNs
}
