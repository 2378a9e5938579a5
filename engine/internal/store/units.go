package store

import (
	"github.com/weir-project/weir/engine/internal/arena"
	"github.com/weir-project/weir/engine/internal/leases"
	"github.com/weir-project/weir/engine/internal/rule"
	"github.com/weir-project/weir/engine/internal/script"
	"github.com/weir-project/weir/engine/internal/unitlog"
)

// UsedUnits is what counts against an entry's limit now, rounded up.
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

// Refundable is how many units were taken and may be given back: what is used, but
// a sliding window counter gives back from its counts, not from what they weigh now.
func (s *Store) Refundable(e Entry) int64 {
	if e.Kind() != uint8(rule.SlidingCounter) {
		return s.UsedUnits(e)
	}
	w := ReadSlidingCounter(e.State()).Roll(s.NowNs, s.Limits.At(e.Limit()).WindowNs)
	return w.Prev + w.Cur
}

// GiveBack takes units, no more than are refundable, out of a state.
func (s *Store) GiveBack(e Entry, l *rule.Limit, units int64) {
	st := e.State()
	switch l.Algorithm {
	case rule.TokenBucket, rule.LeakyBucket:
		deficit := DeficitAt(BucketOf(e), l.Rate, s.NowNs).SubFloor(l.Rate.Grains(units))
		SetBucket(e, GoneAt(deficit, l.Rate, s.NowNs))
	case rule.FixedWindow:
		w := ReadFixed(st)
		w.Used -= units
		w.write(st)
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

// SlotBytes is what the slots of an entry and of its chain take.
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
