package engine

// idleAtNs is the time at which an entry is idle if nothing is taken from it any
// more; Never if that does not come by itself.
func (s *shard) idleAtNs(e entry) int64 {
	st, limit := e.state(), s.limits.at(e.limit())
	switch e.kind() {
	case uint8(TokenBucket), uint8(LeakyBucket):
		return e.bucket().nsUp(limit.Rate.Units)
	case uint8(FixedWindow):
		return readFixed(st).idleAtNs()
	case uint8(SlidingLog):
		return logIdleNs(st, limit)
	case uint8(SlidingCounter):
		return readSlidingCounter(st).idleAtNs(limit.WindowNs)
	case uint8(Concurrency):
		set := readLeases(st)
		return set.lastExpiryNs(&s.slab, leasePlace{})
	case uint8(Strike):
		return max(logIdleNs(st, limit), strikeBlockedNs(st))
	case uint8(Counter):
		return int64(le.Uint64(st[8:]))
	case uint8(Scripted):
		return scriptIdleNs(st)
	case kindClaims: // when the first of them ends
		return readLeases(st).soonestNs
	case kindToken, kindHold:
		_, untilNs := readToken(st)
		return untilNs
	}
	untilNs, _ := readBlock(st)
	return untilNs
}

// logIdleNs is when a log's last unit has left its window.
func logIdleNs(state []byte, l *Limit) int64 {
	if log := readLog(state); log.units > 0 {
		return log.lastNs + l.WindowNs
	}
	return 0
}

// idle reports whether an entry is the same as none: idleAtNs has come. The
// common cases are judged at once, buckets without the division.
func (s *shard) idle(e entry) bool {
	switch e.kind() {
	case uint8(TokenBucket), uint8(LeakyBucket):
		units := s.limits.at(e.limit()).Rate.Units
		return !wideMul(uint64(s.nowNs), uint64(units)).less(e.bucket())
	case uint8(FixedWindow):
		return readFixed(e.state()).idleAtNs() <= s.nowNs
	case uint8(Concurrency):
		set := readLeases(e.state())
		if set.count > 0 && s.nowNs < set.soonestNs {
			return false
		}
	case kindClaims: // they go with their limiter, or one by one
		return false
	}
	return s.idleAtNs(e) <= s.nowNs
}

// freeState frees what an entry's state refers to.
func (s *shard) freeState(e entry) {
	if st := e.logState(); st != nil {
		log := readLog(st)
		log.clear(&s.slab)
		return
	}
	switch e.kind() {
	case uint8(Concurrency), kindClaims:
		set := readLeases(e.state())
		set.clear(&s.slab)
	case uint8(Scripted):
		if isText(e.state()) {
			readText(e.state()).free(&s.slab)
		}
	}
}

// idleGraceNs is how long an idle entry stays before it is collected: a key in
// steady use is idle most of the time, and finding its entry again costs much less
// than making a new one.
const idleGraceNs = int64(4e9)

// collect takes up to budget steps of the wheel: entries whose slot has come up are
// dropped if they have been idle for the grace time, else put where they belong now.
func (s *shard) collect(budget int) { s.collectUntil(s.nowNs-idleGraceNs, budget) }

func (s *shard) collectUntil(nowNs int64, budget int) {
	w := &s.wheel
	for ; budget > 0 && nowNs >= w.dueNs; budget-- {
		p, dueNs := w.earliest()
		if dueNs > nowNs {
			w.tick, w.dueNs = max(w.tick, nowNs>>tickBits), dueNs
			return
		}
		w.tick = max(w.tick, w.startTick(p))
		s.step(*w.head(p), nowNs)
	}
}

// step drops an entry that is idle at a time, or links it anew. Claims that have ended
// go back to their limiter.
func (s *shard) step(r ref, nowNs int64) {
	e := entry(s.slab.at(r))
	idleNs := s.idleAtNs(e)
	if idleNs <= nowNs && e.kind() == kindClaims {
		s.endClaims(r)
		return
	}
	if idleNs <= nowNs {
		s.dropRef(r)
		s.counts.expired++
		return
	}
	s.wheel.unlink(&s.slab, r)
	s.wheel.link(&s.slab, r, idleNs)
}

// dropRef drops an entry known only by its ref.
func (s *shard) dropRef(r ref) {
	c := s.cellOf(r)
	s.drop(&c)
}

// cellOf is the cell of an entry known only by its ref; it does not say live.
func (s *shard) cellOf(r ref) cell {
	e := entry(s.slab.at(r))
	return cell{hash: s.hashOf(r), key: e.key(), ns: namespaceOf(e.kind()), r: r, e: e}
}

// collectAll drops every entry that is idle now, in steps of a bounded size
// between which pause is called.
func (s *shard) collectAll(pause func()) {
	for s.nowNs >= s.wheel.dueNs {
		s.collectUntil(s.nowNs, collectChunk)
		pause()
	}
	// What becomes idle within the current tick stands in that tick's slot.
	s.collectTick(func(e entry) bool { return e.kind() == kindClaims && s.idleAtNs(e) <= s.nowNs }, s.endClaims)
	s.collectTick(func(e entry) bool { return e.kind() != kindClaims && s.idle(e) }, func(r ref) {
		s.dropRef(r)
		s.counts.expired++
	})
}

// collectTick calls drop for the entries of the current tick that are due. What is
// dropped may take others with it, but none that are due as well.
func (s *shard) collectTick(due func(entry) bool, drop func(ref)) {
	var found []ref
	for r := s.wheel.heads[0][s.nowNs>>tickBits%wheelSlots]; r != 0; r = entry(s.slab.at(r)).next() {
		if due(s.slab.at(r)) {
			found = append(found, r)
		}
	}
	for _, r := range found {
		drop(r)
	}
}

// collectChunk bounds how many entries are stepped over under one lock.
const collectChunk = 1024
