package engine

import (
	"github.com/weir-project/weir/engine/internal/arena"
	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/leases"
	"github.com/weir-project/weir/engine/internal/script"
	"github.com/weir-project/weir/engine/internal/unitlog"
)

// idleAtNs is the time at which an entry is idle if nothing is taken from it any
// more; Never if that does not come by itself.
func (s *shard) idleAtNs(e entry) int64 {
	st, limit := e.state(), s.limits.at(e.limit())
	switch e.kind() {
	case uint8(TokenBucket), uint8(LeakyBucket):
		return bucketOf(e).NsUp(limit.Rate.Units)
	case uint8(FixedWindow):
		return readFixed(st).idleAtNs()
	case uint8(SlidingLog):
		return logIdleNs(st, limit)
	case uint8(SlidingCounter):
		return readSlidingCounter(st).idleAtNs(limit.WindowNs)
	case uint8(Concurrency):
		set := leases.Read(st)
		return set.LastExpiryNs(&s.slab, leases.Place{})
	case uint8(Strike):
		return max(logIdleNs(st, limit), strikeBlockedNs(st))
	case uint8(Counter):
		return int64(le.Uint64(st[8:]))
	case uint8(Scripted):
		return script.IdleAtNs(st)
	case kindClaims: // when the first of them ends
		return leases.Read(st).SoonestNs
	case kindToken, kindHold:
		_, untilNs := readToken(st)
		return untilNs
	}
	untilNs, _ := readBlock(st)
	return untilNs
}

// logIdleNs is when a log's last unit has left its window.
func logIdleNs(state []byte, l *Limit) int64 {
	if log := unitlog.Read(state); log.Units > 0 {
		return log.LastNs + l.WindowNs
	}
	return 0
}

// idle reports whether an entry is the same as none: idleAtNs has come. The
// common cases are judged at once, buckets without the division.
func (s *shard) idle(e entry) bool {
	switch e.kind() {
	case uint8(TokenBucket), uint8(LeakyBucket):
		units := s.limits.at(e.limit()).Rate.Units
		return !arith.Mul(uint64(s.nowNs), uint64(units)).Less(bucketOf(e))
	case uint8(FixedWindow):
		return readFixed(e.state()).idleAtNs() <= s.nowNs
	case uint8(Concurrency):
		set := leases.Read(e.state())
		if set.Count > 0 && s.nowNs < set.SoonestNs {
			return false
		}
	case kindClaims: // they go with their limiter, or one by one
		return false
	}
	return s.idleAtNs(e) <= s.nowNs
}

// freeState frees what an entry's state refers to.
func (s *shard) freeState(e entry) {
	if st := logState(e); st != nil {
		log := unitlog.Read(st)
		log.Clear(&s.slab)
		return
	}
	switch e.kind() {
	case uint8(Concurrency), kindClaims:
		set := leases.Read(e.state())
		set.Clear(&s.slab)
	case uint8(Scripted):
		script.FreeValue(e.state(), &s.slab)
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
	for ; budget > 0 && w.due(nowNs); budget-- {
		r, due := w.advance(nowNs)
		if !due {
			return
		}
		s.step(r, nowNs)
	}
}

// step drops an entry that is idle at a time, or links it anew. Claims that have ended
// go back to their limiter.
func (s *shard) step(r arena.Ref, nowNs int64) {
	e := entry(s.slab.At(r))
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
func (s *shard) dropRef(r arena.Ref) {
	c := s.cellOf(r)
	s.drop(&c)
}

// cellOf is the cell of an entry known only by its ref; it does not say live.
func (s *shard) cellOf(r arena.Ref) cell {
	e := entry(s.slab.At(r))
	return cell{hash: s.hashOf(r), key: e.key(), ns: namespaceOf(e.kind()), r: r, e: e}
}

// collectAll drops every entry that is idle now, in steps of a bounded size
// between which pause is called.
func (s *shard) collectAll(pause func()) {
	for s.wheel.due(s.nowNs) {
		s.collectUntil(s.nowNs, collectChunk)
		pause()
	}
	// What becomes idle within the current tick stands in that tick's slot.
	s.collectTick(func(e entry) bool { return e.kind() == kindClaims && s.idleAtNs(e) <= s.nowNs }, s.endClaims)
	s.collectTick(func(e entry) bool { return e.kind() != kindClaims && s.idle(e) }, func(r arena.Ref) {
		s.dropRef(r)
		s.counts.expired++
	})
}

// collectTick calls drop for the entries of the current tick that are due. What is
// dropped may take others with it, but none that are due as well.
func (s *shard) collectTick(due func(entry) bool, drop func(arena.Ref)) {
	var found []arena.Ref
	for r := s.wheel.atTick(s.nowNs); r != 0; r = entry(s.slab.At(r)).next() {
		if due(s.slab.At(r)) {
			found = append(found, r)
		}
	}
	for _, r := range found {
		drop(r)
	}
}

// collectChunk bounds how many entries are stepped over under one lock.
const collectChunk = 1024
