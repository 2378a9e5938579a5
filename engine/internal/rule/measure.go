package rule

import "github.com/weir-project/weir/engine/internal/arith"

// The state of a bucket is its deficit: the tokens that a token bucket lacks, or the backlog of a leaky bucket. The
// deficit is counted in grains. A grain is 1/Rate.PerNs of a unit, so a nanosecond drains exactly Rate.Units grains,
// and neither a cost nor a time is ever divided.

// MostMissing returns the largest deficit that a bucket of this limit can have.
func (l *Limit) MostMissing() arith.Uint128 {
	if l.Algorithm == LeakyBucket {
		return l.Rate.Grains(2*MaxUnits + 1)
	}
	return l.Rate.Grains(MaxUnits + l.Max)
}

// Carry is Keep as older versions of weir computed it. A token bucket keeps its tokens, rounded down and
// at most the new burst. A leaky bucket keeps its backlog, rounded up. The result is at most MostMissing, even
// if the clock was set back.
func (l *Limit) Carry(deficit arith.Uint128, old *Limit) arith.Uint128 {
	return l.translate(deficit, old).Min(l.MostMissing())
}

func (l *Limit) translate(deficit arith.Uint128, old *Limit) arith.Uint128 {
	if l.Algorithm == LeakyBucket {
		return regrain(deficit, old.Rate, l.Rate, true)
	}
	burst, oldBurst := l.Rate.Grains(l.Max), old.Rate.Grains(old.Max)
	if oldBurst.Less(deficit) { // in debt
		return burst.Add(regrain(deficit.Sub(oldBurst), old.Rate, l.Rate, true))
	}
	return burst.SubFloor(regrain(oldBurst.Sub(deficit), old.Rate, l.Rate, false))
}

// Keep converts a deficit under the limit old to this limit: what was used stays used. The deficit stays in units,
// rounded up, and is cut to the size of the new bucket. So the change makes no debt. A debt that there was, by waiting
// requests or a hold that cost more, stays as it is.
func (l *Limit) Keep(deficit arith.Uint128, old *Limit) arith.Uint128 {
	most, room := l.size(), old.size()
	if room.Less(deficit) {
		most = most.Add(regrain(deficit.Sub(room), old.Rate, l.Rate, true))
	}
	return regrain(deficit, old.Rate, l.Rate, true).Min(most).Min(l.MostMissing())
}

// size returns the deficit of a bucket that is used up. A leaky bucket has one unit more than its queue.
func (l *Limit) size() arith.Uint128 {
	if l.Algorithm == LeakyBucket {
		return l.Rate.Grains(l.Max + 1)
	}
	return l.Rate.Grains(l.Max)
}

// regrain converts a quantity from 1/from.PerNs units to 1/to.PerNs units.
func regrain(q arith.Uint128, from, to Rate, up bool) arith.Uint128 {
	if from.PerNs == to.PerNs {
		return q
	}
	whole, _ := q.Div(uint64(from.PerNs))
	part := arith.Mul(q.Mod(uint64(from.PerNs)), uint64(to.PerNs))
	if up {
		part = part.Add(arith.Uint128{Hi: 0, Lo: uint64(from.PerNs - 1)})
	}
	grains, _ := part.Div(uint64(from.PerNs))
	return to.Grains(int64(whole)).Add(arith.Uint128{Hi: 0, Lo: grains})
}

// Most returns the largest number of units that the state of a counting algorithm can represent.
func (l *Limit) Most() int64 {
	if l.Algorithm == SlidingLog {
		return MaxLogUnits
	}
	return MaxUnits
}
