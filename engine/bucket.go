package engine

import "github.com/weir-project/weir/engine/internal/arith"

// A bucket is known by its deficit: the missing tokens of a token bucket, the
// backlog of a leaky one. Both drain at the rate. A deficit is counted in
// 1/Rate.PerNs units, in which a nanosecond drains exactly Rate.Units; the state
// kept is the instant at which it is gone, in 1/Rate.Units nanoseconds. So
// neither adding a cost nor letting time pass ever divides, and nothing is
// rounded before the reply.
//
// Nearly always 96 bits are enough for that instant, little-endian; an entry whose limit
// may need more has all 128 of them.
const (
	shortBucketLen = 12
	longBucketLen  = 16
)

func isBucket(kind uint8) bool {
	return kind == uint8(TokenBucket) || kind == uint8(LeakyBucket)
}

// bucketLen is the length of the state of buckets under a limit.
func bucketLen(l *Limit) int {
	// The largest deficit stays below half of what there is room for, and so does the time:
	// see wide.
	if l.Rate.Units < 1<<32 && l.MostMissing().Hi < 1<<31 {
		return shortBucketLen
	}
	return longBucketLen
}

// limitStateLen is the length of the state of limiters under a limit.
func limitStateLen(l *Limit) int {
	if isBucket(uint8(l.Algorithm)) {
		return bucketLen(l)
	}
	return stateLens[l.Algorithm]
}

// bucketOf is the state of a bucket.
func bucketOf(e entry) (goneAt arith.Uint128) {
	st := e.state()
	goneAt = arith.Uint128{Hi: uint64(le.Uint32(st[8:])), Lo: le.Uint64(st)}
	if e.has(flagLong) {
		goneAt.Hi |= uint64(le.Uint32(st[shortBucketLen:])) << 32
	}
	return goneAt
}

func setBucket(e entry, goneAt arith.Uint128) {
	st := e.state()
	le.PutUint64(st, goneAt.Lo)
	le.PutUint32(st[8:], uint32(goneAt.Hi))
	if e.has(flagLong) {
		le.PutUint32(st[shortBucketLen:], uint32(goneAt.Hi>>32))
	} else if goneAt.Hi>>32 != 0 {
		panic("engine: a bucket's state is longer than its limit allows")
	}
}

// readWide and writeWide are a number as claims and stores have it.
func readWide(b []byte) arith.Uint128 { return arith.Uint128{Hi: le.Uint64(b), Lo: le.Uint64(b[8:])} }

func writeWide(b []byte, n arith.Uint128) {
	le.PutUint64(b, n.Hi)
	le.PutUint64(b[8:], n.Lo)
}

// deficitAt is what is left of a bucket at a time.
func deficitAt(goneAt arith.Uint128, r Rate, nowNs int64) arith.Uint128 {
	return goneAt.SubFloor(arith.Mul(uint64(nowNs), uint64(r.Units)))
}

// goneAt is the state of a bucket with a deficit at a time.
func goneAt(deficit arith.Uint128, r Rate, nowNs int64) arith.Uint128 {
	return deficit.Add(arith.Mul(uint64(nowNs), uint64(r.Units)))
}

// tokenBucket decides about cost units. The bucket may go into debt as far as it
// is paid back within waitNs, and by at most MaxUnits.
func tokenBucket(deficit arith.Uint128, op *Op, d *Decision) (after arith.Uint128) {
	r, burst := op.Limit.Rate, op.Limit.Rate.Grains(op.Limit.Max)
	floor := burst // the largest deficit a request may leave
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

// retryMs is the time until a deficit has drained to floor; -1 when the cost alone
// exceeds it.
func retryMs(deficit, floor, cost arith.Uint128, r Rate) int64 {
	if floor.Less(cost) {
		return -1
	}
	return deficit.Sub(floor).MsUp(r.Units)
}

// leakyBucket decides about cost units that leave one by one, 1/rate apart: one
// passes at once and Limit.Max more may wait (nginx's limit_req with a burst and
// without nodelay). An admitted request is held until its last unit has its turn.
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

func (s *shard) nextBucket(c *cell, op *Op, d *Decision) nextState {
	var deficit arith.Uint128
	if c.live {
		old := s.limits.at(c.e.limit())
		deficit = deficitAt(bucketOf(c.e), old.Rate, s.nowNs)
		if c.known = old.Is(&op.Limit); !c.known {
			deficit = op.Limit.Carry(deficit, old)
		}
	}
	var after arith.Uint128
	if op.Limit.Algorithm == TokenBucket {
		after = tokenBucket(deficit, op, d)
	} else {
		after = leakyBucket(deficit, op, d)
	}
	at := goneAt(after, op.Limit.Rate, s.nowNs)
	return nextState{at.Hi, at.Lo, 0}
}
