package store

import (
	"math"

	"github.com/weir-project/weir/engine/internal/arena"
	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/leases"
	"github.com/weir-project/weir/engine/internal/rule"
	"github.com/weir-project/weir/engine/internal/script"
	"github.com/weir-project/weir/engine/internal/unitlog"
)

// IdleAtNs returns the time at which an unused entry becomes idle, or Never if it does not become idle by
// itself.
func (s *Store) IdleAtNs(e Entry) int64 {
	st, limit := e.State(), s.Limits.At(e.Limit())
	switch e.Kind() {
	case uint8(rule.TokenBucket), uint8(rule.LeakyBucket):
		return BucketOf(e).NsUp(limit.Rate.Units)
	case uint8(rule.FixedWindow):
		return ReadFixed(st).idleAtNs()
	case uint8(rule.SlidingLog):
		return logIdleNs(st, limit)
	case uint8(rule.SlidingCounter):
		return ReadSlidingCounter(st).IdleAtNs(limit.WindowNs)
	case uint8(rule.Concurrency):
		set := leases.Read(st)
		return set.LastExpiryNs(&s.Slab, leases.Place{})
	case uint8(rule.Strike):
		return max(logIdleNs(st, limit), StrikeBlockedNs(st))
	case uint8(rule.Counter):
		return ReadCounter(st).ExpiresNs
	case uint8(rule.Scripted):
		return script.IdleAtNs(st)
	case kindAllocations: // due when the first allocation ends
		if l := s.listOf(e); l != nil {
			return l.SoonestNs()
		}
		return leases.Read(st).SoonestNs
	case KindHold:
		if untold(st) { // due at its end, without the grace of Collect
			return holdEndsNs(st) - IdleGraceNs
		}
		return forgetNs(st)
	case KindToken:
		return forgetNs(st)
	case kindBundle:
		return s.lastIdleNs(e)
	}
	own, everywhere := ReadBlocks(st)
	return max(own.UntilNs, everywhere.UntilNs)
}

// logIdleNs returns when a log's last unit leaves its window.
func logIdleNs(state []byte, l *rule.Limit) int64 {
	if log := unitlog.Read(state); log.Units > 0 {
		return log.LastNs + l.WindowNs
	}
	return 0
}

// idle reports whether an entry is the same as no entry: IdleAtNs has passed. It decides common cases without
// computing IdleAtNs, which needs a division for a bucket.
func (s *Store) idle(e Entry) bool {
	switch e.Kind() {
	case uint8(rule.TokenBucket), uint8(rule.LeakyBucket):
		units := s.Limits.At(e.Limit()).Rate.Units
		return !arith.Mul(uint64(s.NowNs), uint64(units)).Less(BucketOf(e))
	case uint8(rule.FixedWindow):
		return ReadFixed(e.State()).idleAtNs() <= s.NowNs
	case uint8(rule.Concurrency):
		set := leases.Read(e.State())
		if set.Count > 0 && s.NowNs < set.SoonestNs {
			return false
		}
	case kindAllocations: // dropped with the limiter, or when the last allocation is removed
		return false
	case KindHold:
		if untold(e.State()) {
			return false
		}
	}
	return s.IdleAtNs(e) <= s.NowNs
}

// freeState frees the blocks that an entry's state refers to.
func (s *Store) freeState(e Entry) {
	if st := logState(e); st != nil {
		log := unitlog.Read(st)
		log.Clear(&s.Slab)
		return
	}
	switch e.Kind() {
	case uint8(rule.Concurrency):
		set := leases.Read(e.State())
		set.Clear(&s.Slab)
	case kindAllocations:
		s.freeAllocations(e)
	case uint8(rule.Scripted):
		script.FreeValue(e.State(), &s.Slab)
	}
}

// IdleGraceNs is how long an idle entry stays before it is collected. A key in steady use is idle most of the
// time, and finding its entry costs much less than making a new one.
const IdleGraceNs = int64(4e9)

// Collect makes up to budget steps of the wheel. It drops the entries of due slots that have been idle for the
// grace time, and moves the others to the slot of their current time.
func (s *Store) Collect(budget int) { s.collectUntil(s.NowNs-IdleGraceNs, budget) }

func (s *Store) collectUntil(nowNs int64, budget int) {
	w := &s.Wheel
	for ; budget > 0 && nowNs >= w.DueNs; budget-- {
		r, due := w.advance(nowNs)
		if !due {
			return
		}
		s.step(r, nowNs)
	}
}

// step drops an entry that is idle at a time, or links it again. It gives ended allocations back to their
// limiter. A hold whose end must be told moves to the list of EndedHolds.
func (s *Store) step(r arena.Ref, nowNs int64) {
	e := Entry(s.Slab.At(r))
	idleNs := s.IdleAtNs(e)
	if idleNs <= nowNs && e.Kind() == kindAllocations {
		s.collectAllocations(r, shortRelease)
		return
	}
	untold := e.Kind() == KindHold && untold(e.State())
	if idleNs <= nowNs && !untold {
		s.expire(r)
		return
	}
	s.Wheel.unlink(&s.Slab, r)
	switch {
	case !untold || idleNs > nowNs:
		s.Wheel.link(&s.Slab, r, idleNs)
	case s.NowNs < holdEndsNs(e.State()): // CollectAll gives no grace
		s.Wheel.link(&s.Slab, r, holdEndsNs(e.State()))
	default:
		s.Wheel.linkIn(&s.Slab, r, endedSlot)
	}
}

// EndedHolds calls visit with the ends and ids of up to most holds that have ended, and whose end must be told. Collect
// finds a hold up to a tick after its end, or up to IdleGraceNs later if CollectAll was called just before the end.
func (s *Store) EndedHolds(most int, visit func(endsNs int64, id []byte)) {
	for r := s.Wheel.ended; r != 0 && most > 0; most-- {
		e := Entry(s.Slab.At(r))
		visit(holdEndsNs(e.State()), e.Key())
		r = e.next()
	}
}

// expire drops an idle entry.
func (s *Store) expire(r arena.Ref) {
	if s.catchUpSlot(r) {
		return
	}
	if e := Entry(s.Slab.At(r)); e.Kind() == kindBundle {
		s.expireBundle(r, e)
		return
	}
	s.EachCell(r, s.Drop)
	s.Counts.Expired++
}

// EachCell calls visit with the cell of the entry in a slot, or with the cells of the limiters of a bundle. The cells
// do not have Live set. visit may drop its cell's entry, and nothing else.
func (s *Store) EachCell(r arena.Ref, visit func(c *Cell)) {
	e := Entry(s.Slab.At(r))
	if e.Kind() == kindBundle {
		s.eachMember(r, e, visit)
		return
	}
	c := Cell{Hash: s.hashOf(r), Key: e.Key(), Space: SpaceOf(e.Kind()), Ref: r, Entry: e}
	visit(&c)
}

// CollectAll drops every entry that is idle now. It works in bounded steps and calls pause between them.
func (s *Store) CollectAll(pause func()) {
	for s.NowNs >= s.Wheel.DueNs {
		s.collectUntil(s.NowNs, collectChunk)
		pause()
	}
	// Entries that become idle within the current tick are in that tick's slot.
	s.collectTick(func(e Entry) bool { return e.Kind() == kindAllocations && s.IdleAtNs(e) <= s.NowNs },
		func(r arena.Ref) { s.collectAllocations(r, math.MaxInt) })
	s.collectTick(func(e Entry) bool { return e.Kind() != kindAllocations && s.idle(e) }, s.expire)
}

// collectTick calls drop for the entries of the current tick for which due returns true. drop may also drop other
// entries, but none for which due returns true.
func (s *Store) collectTick(due func(Entry) bool, drop func(arena.Ref)) {
	var found []arena.Ref
	for r := s.Wheel.atTick(s.NowNs); r != 0; r = Entry(s.Slab.At(r)).next() {
		if due(s.Slab.At(r)) {
			found = append(found, r)
		}
	}
	for _, r := range found {
		drop(r)
	}
}

// collectChunk bounds how many entries are visited under one lock.
const collectChunk = 1024
