package engine

// A strike limiter keeps a log and the time until which it is blocked: log
// blockedNs(8).

func strikeBlockedNs(state []byte) int64 { return int64(le.Uint64(state[logLen:])) }

func (s *shard) takeStrike(c *cell, op *Op, d *Decision) bool {
	var blockedNs int64
	if c.live {
		blockedNs = strikeBlockedNs(c.e.state())
	}
	log, count := s.openLog(c, op.Limit.WindowNs)
	blocked := blockedNs > s.nowNs
	newestNs := log.lastNs
	if !blocked && op.Cost > 0 {
		was := count
		count = min(count+op.Cost, MaxLogUnits)
		newestNs = s.nowNs
		if penaltyNs := op.Limit.Steps.penaltyNs(was, count); penaltyNs > 0 {
			blockedNs = s.nowNs + penaltyNs
		}
	}
	s.strikeAnswer(op, count, newestNs, blockedNs, d)
	units := min(op.Cost, MaxLogUnits)
	if blocked || op.Cost == 0 || op.Dry || !s.hold(c, op, d, log.growth(&s.slab, s.nowNs, units)) {
		return false
	}
	s.record(c, op.Limit.WindowNs, units)
	s.counts.strikes += units
	if blockedNs > s.nowNs {
		s.counts.penalties++
		s.counts.lockouts += oneIf(count >= op.Limit.Max)
	}
	le.PutUint64(c.e.state()[logLen:], uint64(blockedNs))
	s.touched(c)
	return true
}

func (s *shard) strikeAnswer(op *Op, count, newestNs, blockedNs int64, d *Decision) {
	blockedFor := max(blockedNs-s.nowNs, 0)
	d.Allowed = oneIf(blockedFor == 0)
	d.RetryMs = nsToMs(blockedFor)
	d.Remaining = max(op.Limit.Max-count, 0)
	d.Limit = op.Limit.Max
	if count > 0 {
		blockedFor = max(blockedFor, newestNs+op.Limit.WindowNs-s.nowNs)
	}
	d.ResetMs = nsToMs(blockedFor)
}

// pardon ends a penalty.
func (s *shard) pardon(e entry) { le.PutUint64(e.state()[logLen:], 0) }

// penaltyNs is the penalty for going from one count to another: that of the
// highest threshold reached, if one was passed or the last one stands behind.
func (s Steps) penaltyNs(was, count int64) (penaltyNs int64) {
	for i := range s.Len() {
		step := s.At(i)
		last := i == s.Len()-1
		if count >= step.Threshold && (was < step.Threshold || last) {
			penaltyNs = step.PenaltyNs
		}
	}
	return penaltyNs
}
