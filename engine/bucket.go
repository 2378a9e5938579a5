package engine

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

func isBucket(kind uint8) bool { return kind == uint8(TokenBucket) || kind == uint8(LeakyBucket) }

// mostMissing is the largest deficit under a limit. A bucket may be in debt by MaxUnits, and
// a backlog have been made under another limit.
func (l *Limit) mostMissing() wide {
	if l.Algorithm == LeakyBucket {
		return l.Rate.grains(2*MaxUnits + 1)
	}
	return l.Rate.grains(MaxUnits + l.Max)
}

// bucketLen is the length of the state of buckets under a limit.
func (l *Limit) bucketLen() int {
	// The largest deficit stays below half of what there is room for, and so does the time:
	// see wide.
	if l.Rate.Units < 1<<32 && l.mostMissing().hi < 1<<31 {
		return shortBucketLen
	}
	return longBucketLen
}

// stateLen is the length of the state of limiters under a limit.
func (l *Limit) stateLen() int {
	if isBucket(uint8(l.Algorithm)) {
		return l.bucketLen()
	}
	return stateLens[l.Algorithm]
}

// bucket is the state of a bucket.
func (e entry) bucket() (goneAt wide) {
	st := e.state()
	goneAt = wide{uint64(le.Uint32(st[8:])), le.Uint64(st)}
	if e.has(flagLong) {
		goneAt.hi |= uint64(le.Uint32(st[shortBucketLen:])) << 32
	}
	return goneAt
}

func (e entry) setBucket(goneAt wide) {
	st := e.state()
	le.PutUint64(st, goneAt.lo)
	le.PutUint32(st[8:], uint32(goneAt.hi))
	if e.has(flagLong) {
		le.PutUint32(st[shortBucketLen:], uint32(goneAt.hi>>32))
	} else if goneAt.hi>>32 != 0 {
		panic("engine: a bucket's state is longer than its limit allows")
	}
}

// readWide and writeWide are a number as claims and stores have it.
func readWide(b []byte) wide { return wide{le.Uint64(b), le.Uint64(b[8:])} }

func writeWide(b []byte, n wide) {
	le.PutUint64(b, n.hi)
	le.PutUint64(b[8:], n.lo)
}

// deficitAt is what is left of a bucket at a time.
func deficitAt(goneAt wide, r Rate, nowNs int64) wide {
	return goneAt.subFloor(wideMul(uint64(nowNs), uint64(r.Units)))
}

// goneAt is the state of a bucket with a deficit at a time.
func goneAt(deficit wide, r Rate, nowNs int64) wide {
	return deficit.add(wideMul(uint64(nowNs), uint64(r.Units)))
}

// grains is a number of units in the measure of a deficit.
func (r Rate) grains(units int64) wide { return wideMul(uint64(units), uint64(r.PerNs)) }

// tokenBucket decides about cost units. The bucket may go into debt as far as it
// is paid back within waitNs, and by at most MaxUnits.
func tokenBucket(deficit wide, op *Op, d *Decision) (after wide) {
	r, burst := op.Limit.Rate, op.Limit.Rate.grains(op.Limit.Max)
	floor := burst // the largest deficit a request may leave
	if op.WaitNs > 0 {
		floor = burst.add(wideMul(uint64(op.WaitNs), uint64(r.Units)))
		floor = floor.min(burst.add(r.grains(MaxUnits)))
	}
	if op.forced {
		floor = burst.add(r.grains(MaxUnits))
	}
	grant, want := op.Cost, op.Cost
	if op.Partial || op.forced {
		grant = min(op.Cost, floor.subFloor(deficit).floor(r.PerNs))
		want = min(op.Cost, 1)
	}
	after = deficit.add(r.grains(grant))
	if floor.less(after) || grant < want {
		d.RetryMs = retryMs(deficit.add(r.grains(want)), floor, r.grains(want), r)
		after = deficit
	} else {
		d.Allowed = grant
		if !op.Partial {
			d.Allowed = 1
		}
		d.RetryMs = after.subFloor(burst).msUp(r.Units)
	}
	d.Remaining = burst.subFloor(after).floor(r.PerNs)
	d.ResetMs = after.msUp(r.Units)
	d.Limit = op.Limit.Max
	return after
}

// retryMs is the time until a deficit has drained to floor; -1 when the cost alone
// exceeds it.
func retryMs(deficit, floor, cost wide, r Rate) int64 {
	if floor.less(cost) {
		return -1
	}
	return deficit.sub(floor).msUp(r.Units)
}

// leakyBucket decides about cost units that leave one by one, 1/rate apart: one
// passes at once and Limit.Max more may wait (nginx's limit_req with a burst and
// without nodelay). An admitted request is held until its last unit has its turn.
func leakyBucket(backlog wide, op *Op, d *Decision) (after wide) {
	r := op.Limit.Rate
	room, cost := r.grains(op.Limit.Max+1), r.grains(op.Cost)
	if op.forced {
		room = room.add(r.grains(MaxUnits))
		cost = cost.min(room.subFloor(backlog))
	}
	after = backlog.add(cost)
	if room.less(after) {
		d.RetryMs = retryMs(after, room, cost, r)
		after = backlog
	} else {
		d.Allowed = 1
		if op.Cost > 0 {
			d.RetryMs = after.sub(r.grains(1)).msUp(r.Units)
		}
	}
	d.Remaining = room.subFloor(after).floor(r.PerNs)
	d.ResetMs = after.msUp(r.Units)
	d.Limit = op.Limit.Max
	return after
}

// carry brings a deficit measured under another limit into the measure of this
// one. A token bucket keeps its tokens, rounded down and cut to the new burst; a
// leaky one its backlog, rounded up. Where the clock was set back a deficit may have become
// larger than any that was ever taken; it is cut too.
func (l *Limit) carry(deficit wide, old *Limit) wide {
	return l.translate(deficit, old).min(l.mostMissing())
}

func (l *Limit) translate(deficit wide, old *Limit) wide {
	if l.Algorithm == LeakyBucket {
		return regrain(deficit, old.Rate, l.Rate, true)
	}
	burst, oldBurst := l.Rate.grains(l.Max), old.Rate.grains(old.Max)
	if oldBurst.less(deficit) { // in debt
		return burst.add(regrain(deficit.sub(oldBurst), old.Rate, l.Rate, true))
	}
	return burst.subFloor(regrain(oldBurst.sub(deficit), old.Rate, l.Rate, false))
}

// regrain turns a quantity in 1/from.PerNs units into 1/to.PerNs units.
func regrain(q wide, from, to Rate, up bool) wide {
	if from.PerNs == to.PerNs {
		return q
	}
	whole, _ := q.div(uint64(from.PerNs))
	part := wideMul(q.mod(uint64(from.PerNs)), uint64(to.PerNs))
	if up {
		part = part.add(wide{0, uint64(from.PerNs - 1)})
	}
	grains, _ := part.div(uint64(from.PerNs))
	return to.grains(int64(whole)).add(wide{0, grains})
}

func (s *shard) nextBucket(c *cell, op *Op, d *Decision) nextState {
	var deficit wide
	if c.live {
		old := s.limits.at(c.e.limit())
		deficit = deficitAt(c.e.bucket(), old.Rate, s.nowNs)
		if c.known = old.is(&op.Limit); !c.known {
			deficit = op.Limit.carry(deficit, old)
		}
	}
	var after wide
	if op.Limit.Algorithm == TokenBucket {
		after = tokenBucket(deficit, op, d)
	} else {
		after = leakyBucket(deficit, op, d)
	}
	at := goneAt(after, op.Limit.Rate, s.nowNs)
	return nextState{at.hi, at.lo, 0}
}
