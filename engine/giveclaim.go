package engine

import (
	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/leases"
	"github.com/weir-project/weir/engine/internal/unitlog"
)

// How each algorithm gives back what was held. In the end the limiter is as if what
// was used had been taken when it was held, or it is fuller than that, never emptier.

// markOf says where in a limiter units just taken are.
//
//   - A bucket is a queue: what refills or leaks pays for units in the order in which
//     they were taken. The mark is when the last of them will be paid for, in the measure
//     of the state.
//   - A sliding window counter counts them in the window that begins at the mark.
//   - A log has them at the time that is the mark.
//   - A fixed window needs none: when it is over the limiter is idle.
func (s *shard) markOf(e entry) arith.Uint128 {
	switch e.kind() {
	case uint8(TokenBucket), uint8(LeakyBucket):
		return bucketOf(e)
	case uint8(SlidingCounter):
		return arith.Uint128{Hi: 0, Lo: uint64(readSlidingCounter(e.state()).startNs)}
	case uint8(SlidingLog):
		return arith.Uint128{Hi: 0, Lo: uint64(s.nowNs)}
	}
	return arith.Uint128{}
}

// giveClaim gives units of a claim back at a time, as far as they have not been paid
// for or left the window. The marks of other claims move with what they mark.
func (s *shard) giveClaim(e entry, x *claim, units, atNs int64, others []claim) {
	l, st := s.limits.at(e.limit()), e.state()
	switch l.Algorithm {
	case TokenBucket, LeakyBucket:
		given := deficitAt(x.mark, l.Rate, atNs).Min(l.Rate.Grains(units))
		setBucket(e, bucketOf(e).SubFloor(given))
		for i := range others {
			if x.mark.Less(others[i].mark) {
				others[i].mark = others[i].mark.Sub(given)
			}
		}
	case FixedWindow:
		w := readFixed(st)
		w.used -= min(units, w.used)
		w.write(st)
	case SlidingCounter:
		w := readSlidingCounter(st) // as it is: to roll it would tell when this is done
		switch int64(x.mark.Lo) {
		case w.startNs:
			w.cur -= min(units, w.cur)
		case w.startNs - l.WindowNs:
			w.prev -= min(units, w.prev)
		}
		w.write(st)
	case SlidingLog:
		log := unitlog.Read(st)
		log.TakeOut(&s.slab, int64(x.mark.Lo), units)
		log.Write(st)
	}
}

// refunded moves the marks of the claims of a bucket to which a client gives units back:
// as if they had been the next to be paid for, so that no claim is on units that are gone.
func (s *shard) refunded(c *cell, l *Limit, units int64) {
	k := s.openClaims(c)
	if k.r == 0 || l.Algorithm != TokenBucket && l.Algorithm != LeakyBucket {
		return
	}
	set := leases.Read(k.e.state())
	list := s.claimsIn(&set)
	for i := range list {
		list[i].mark = list[i].mark.SubFloor(l.Rate.Grains(units))
	}
	s.move(&set, list)
	s.changed(k.r)
}
