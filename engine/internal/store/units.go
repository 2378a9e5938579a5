package store

import (
	"github.com/weir-project/weir/engine/internal/arena"
	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/leases"
	"github.com/weir-project/weir/engine/internal/rule"
	"github.com/weir-project/weir/engine/internal/script"
	"github.com/weir-project/weir/engine/internal/unitlog"
)

// UsedUnits returns the units that count against an entry's limit now, rounded up.
func (s *Store) UsedUnits(e Entry) int64 {
	st, l := e.State(), s.Limits.At(e.Limit())
	switch e.Kind() {
	case uint8(rule.TokenBucket), uint8(rule.LeakyBucket):
		return DeficitAt(BucketOf(e), l.Rate, s.NowNs).DivUp(uint64(l.Rate.PerNs))
	case uint8(rule.FixedWindow):
		return ReadFixed(st).Used
	case uint8(rule.SlidingLog), uint8(rule.Strike):
		log := unitlog.Read(st)
		return log.Units - log.UnitsUntil(&s.Slab, s.NowNs-l.WindowNs)
	case uint8(rule.SlidingCounter):
		return ReadSlidingCounter(st).Roll(s.NowNs, l.WindowNs).Used(s.NowNs, l.WindowNs)
	case uint8(rule.Concurrency):
		set := leases.Read(st)
		set.Hide(&s.Slab, s.NowNs)
		return set.Units
	case uint8(rule.Counter):
		return ReadCounter(st).Value
	case uint8(rule.Scripted):
		return script.UsedUnits(st)
	}
	return 0
}

// Refundable returns how many units may be given back: the units in use, or for a sliding window counter the counts
// of both windows without their weight.
func (s *Store) Refundable(e Entry) int64 {
	if e.Kind() != uint8(rule.SlidingCounter) {
		return s.UsedUnits(e)
	}
	w := ReadSlidingCounter(e.State()).Roll(s.NowNs, s.Limits.At(e.Limit()).WindowNs)
	return w.Prev + w.Cur
}

// RemoveUnits removes units from a state, at most as many as are refundable.
func (s *Store) RemoveUnits(e Entry, l *rule.Limit, units int64) {
	st := e.State()
	switch l.Algorithm {
	case rule.TokenBucket, rule.LeakyBucket:
		deficit := DeficitAt(BucketOf(e), l.Rate, s.NowNs).SubFloor(l.Rate.Grains(units))
		SetBucket(e, GoneAt(deficit, l.Rate, s.NowNs))
	case rule.FixedWindow:
		w := ReadFixed(st)
		w.Used -= units
		w.Write(st)
	case rule.SlidingCounter:
		w := ReadSlidingCounter(st).Roll(s.NowNs, l.WindowNs)
		fromCur := min(units, w.Cur)
		w.Cur -= fromCur
		w.Prev -= min(units-fromCur, w.Prev)
		w.write(st)
	case rule.SlidingLog, rule.Strike:
		log := unitlog.Read(st)
		log.DropUntil(&s.Slab, s.NowNs-l.WindowNs)
		log.KeepFirst(&s.Slab, log.Units-units)
		log.Write(st)
	}
}

// SlotBytes returns the size of the slots of an entry and of its chain.
func (s *Store) SlotBytes(r arena.Ref, e Entry) int64 {
	n := s.Slab.Len(r)
	if st := logState(e); st != nil {
		log := unitlog.Read(st)
		n += log.Bytes(&s.Slab)
	}
	switch e.Kind() {
	case uint8(rule.Concurrency):
		set := leases.Read(e.State())
		n += set.Bytes(&s.Slab)
	case uint8(rule.Scripted):
		n += script.ValueBytes(e.State(), &s.Slab)
	}
	return int64(n)
}

// A release of held units leaves the limiter as if the hold had taken only the used units when it was made. The
// limiter may then have fewer units left than in that case, but never more. So a release admits nobody too many.

// markOf returns the mark of units that were just taken: their position in the limiter.
//
//   - A bucket is a queue: refilling or leaking pays for units in the order in which they were taken. The mark
//     is the time at which the last of the units is paid for, in the unit of the bucket's state.
//   - A sliding window counter counts the units in the window that begins at the mark.
//   - A log has the units at the time of the mark.
//   - A fixed window needs no mark, because at its end the limiter is idle.
func (s *Store) markOf(e Entry) arith.Uint128 {
	switch e.Kind() {
	case uint8(rule.TokenBucket), uint8(rule.LeakyBucket):
		return BucketOf(e)
	case uint8(rule.SlidingCounter):
		return arith.Uint128{Hi: 0, Lo: uint64(ReadSlidingCounter(e.State()).StartNs)}
	case uint8(rule.SlidingLog):
		return arith.Uint128{Hi: 0, Lo: uint64(s.NowNs)}
	}
	return arith.Uint128{}
}

// releaseAllocation gives units of an allocation back at a time, unless they were paid for or have left the
// window. It returns how far the marks of later allocations must move.
func (s *Store) releaseAllocation(e Entry, x *allocation, units, atNs int64) (given arith.Uint128) {
	l, st := s.Limits.At(e.Limit()), e.State()
	switch l.Algorithm {
	case rule.TokenBucket, rule.LeakyBucket:
		given = DeficitAt(x.mark, l.Rate, atNs).Min(l.Rate.Grains(units))
		SetBucket(e, BucketOf(e).SubFloor(given))
	case rule.FixedWindow:
		w := ReadFixed(st)
		w.Used -= min(units, w.Used)
		w.Write(st)
	case rule.SlidingCounter:
		w := ReadSlidingCounter(st) // not rolled: the result must not depend on the time of this call
		switch int64(x.mark.Lo) {
		case w.StartNs:
			w.Cur -= min(units, w.Cur)
		case w.StartNs - l.WindowNs:
			w.Prev -= min(units, w.Prev)
		}
		w.write(st)
	case rule.SlidingLog:
		log := unitlog.Read(st)
		log.Remove(&s.Slab, int64(x.mark.Lo), units)
		log.Write(st)
	}
	return given
}

// moveLater moves the marks of allocations after a mark.
func moveLater(list []allocation, mark, by arith.Uint128) {
	for i := range list {
		if mark.Less(list[i].mark) {
			list[i].mark = list[i].mark.Sub(by)
		}
	}
}

// MoveMarks moves the marks of a bucket's allocations when a client gives units back by OpRefund. The refund is
// treated as if it removed the units that are paid for next. All marks move earlier by that amount, so no
// allocation refers to units that are gone.
func (s *Store) MoveMarks(c *Cell, l *rule.Limit, units int64) {
	k := s.OpenAllocations(c)
	if k.Ref == 0 || l.Algorithm != rule.TokenBucket && l.Algorithm != rule.LeakyBucket {
		return
	}
	if list := s.listOf(k.Entry); list != nil {
		list.MoveAll(l.Rate.Grains(units))
		s.Changed(k.Ref)
		return
	}
	set := leases.Read(k.Entry.State())
	list := s.allocationsIn(&set)
	for i := range list {
		list[i].mark = list[i].mark.SubFloor(l.Rate.Grains(units))
	}
	s.storeMarks(&set, list)
	s.Changed(k.Ref)
}
