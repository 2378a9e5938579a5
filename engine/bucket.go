package engine

import (
	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/store"
)

// tokenBucket decides about op.Cost units. The bucket may go into debt by as much as it repays within
// op.WaitNs, and by at most MaxUnits.
func tokenBucket(deficit arith.Uint128, op *Op, d *Decision) (after arith.Uint128) {
	r, burst := op.Limit.Rate, op.Limit.Rate.Grains(op.Limit.Max)
	floor := burst // the largest deficit that an admitted request may leave
	if op.WaitNs > 0 {
		floor = burst.Add(arith.Mul(uint64(op.WaitNs), uint64(r.Units)))
		floor = floor.Min(burst.Add(r.Grains(MaxUnits)))
	}
	if op.forced {
		floor = burst.Add(r.Grains(MaxUnits))
	}
	grant, want := op.Cost, op.Cost
	if op.Partial || op.forced {
		grant = min(op.Cost, floor.SubFloor(deficit).Floor(r.PerNs))
		want = min(op.Cost, 1)
	}
	after = deficit.Add(r.Grains(grant))
	if floor.Less(after) || grant < want {
		d.RetryMs = retryMs(deficit.Add(r.Grains(want)), floor, r.Grains(want), r)
		after = deficit
	} else {
		d.Allowed = grant
		if !op.Partial {
			d.Allowed = 1
		}
		d.RetryMs = after.SubFloor(burst).MsUp(r.Units)
	}
	d.Remaining = burst.SubFloor(after).Floor(r.PerNs)
	d.ResetMs = after.MsUp(r.Units)
	d.Limit = op.Limit.Max
	return after
}

// retryMs returns the time until a deficit has drained to floor, or -1 if the cost alone exceeds floor.
func retryMs(deficit, floor, cost arith.Uint128, r Rate) int64 {
	if floor.Less(cost) {
		return -1
	}
	return deficit.Sub(floor).MsUp(r.Units)
}

// leakyBucket decides about units that leave one by one, 1/rate apart. One unit passes at once and Limit.Max
// more may wait, as in nginx's limit_req with a burst and without nodelay. RetryMs of an admitted request is the
// time until its last unit leaves, and the caller must delay the request by that time.
func leakyBucket(backlog arith.Uint128, op *Op, d *Decision) (after arith.Uint128) {
	r := op.Limit.Rate
	room, cost := r.Grains(op.Limit.Max+1), r.Grains(op.Cost)
	if op.forced {
		room = room.Add(r.Grains(MaxUnits))
		cost = cost.Min(room.SubFloor(backlog))
	}
	after = backlog.Add(cost)
	if room.Less(after) {
		d.RetryMs = retryMs(after, room, cost, r)
		after = backlog
	} else {
		d.Allowed = 1
		if op.Cost > 0 {
			d.RetryMs = after.Sub(r.Grains(1)).MsUp(r.Units)
		}
	}
	d.Remaining = room.SubFloor(after).Floor(r.PerNs)
	d.ResetMs = after.MsUp(r.Units)
	d.Limit = op.Limit.Max
	return after
}

// carryDeficit converts a deficit to the limit l.
func carryDeficit(s *store.Store, l, old *Limit, deficit arith.Uint128) arith.Uint128 {
	if s.OldRules {
		return l.Carry(deficit, old)
	}
	return l.Keep(deficit, old)
}

func evaluateBucket(s *store.Store, c *store.Cell, op *Op, d *Decision) outcome {
	var deficit arith.Uint128
	if c.Live {
		old := s.Limits.At(c.Entry.Limit())
		deficit = store.DeficitAt(store.BucketOf(c.Entry), old.Rate, s.NowNs)
		if c.Known = old.Is(&op.Limit); !c.Known {
			deficit = carryDeficit(s, &op.Limit, old, deficit)
		}
	}
	var after arith.Uint128
	if op.Limit.Algorithm == TokenBucket {
		after = tokenBucket(deficit, op, d)
	} else {
		after = leakyBucket(deficit, op, d)
	}
	at := store.GoneAt(after, op.Limit.Rate, s.NowNs)
	return outcome{at.Hi, at.Lo, 0}
}
