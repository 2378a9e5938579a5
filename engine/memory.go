package engine

// Memory is counted in pages, index segments and limits, for the whole table.
// Evictions begin at seven eighths of the bound; what is above is the slack for
// slots of a size that no eviction happens to free.
const (
	softNum, softDen = 7, 8
	// evictPerOp bounds the entries one operation evicts, evictLook the entries
	// among which each is chosen, evictTries the segments looked at for one.
	evictPerOp = 16
	evictLook  = 16
	evictTries = 32
)

// full reports whether memory in use exceeds num/den of the bound.
func (t *Table) full(num, den int64) bool {
	return t.opts.MaxMemoryBytes > 0 && t.used.Load() >= t.opts.MaxMemoryBytes/den*num
}

// mayGrow reports whether a slot of n bytes may be taken.
func (s *shard) mayGrow(n int) bool {
	return s.slab.hasRoom(n) || !s.t.full(1, 1) && (s.t.opts.WhenFull == LeastHarm || !s.t.full(softNum, softDen))
}

// relieve evicts entries, when memory is nearly full, until there are slots for
// what an operation may add: an entry, a block of its log or leases, a token.
func (s *shard) relieve(op *Op) {
	if !s.t.full(softNum, softDen) || s.t.opts.WhenFull != LeastHarm {
		return
	}
	sizes := [...]int{op.entryLen(), op.Limit.Algorithm.blockLen(), op.tokenLen()}
	for range evictPerOp {
		enough := true
		for _, n := range sizes {
			enough = enough && (n == 0 || s.slab.hasRoom(n))
		}
		if enough || !s.evict() {
			return
		}
	}
}

// entryLen is the size of the entry the operation may add.
func (op *Op) entryLen() int {
	switch op.Code {
	case OpTake:
		return entryHead + len(op.Key) + stateLens[op.Limit.Algorithm]
	case OpIncr:
		return entryHead + len(op.Key) + stateLens[Counter]
	case OpBlock:
		return entryHead + len(op.Key) + blockLen + len(op.Text)
	}
	return 0
}

// tokenLen is the size of the token the operation may add.
func (op *Op) tokenLen() int {
	if len(op.ID) == 0 {
		return 0
	}
	return entryHead + 2 + len(op.Key) + len(op.ID) + tokenLen
}

// blockLen is the size of the largest slot that an entry of this algorithm may
// need besides itself.
func (a Algorithm) blockLen() int {
	switch a {
	case SlidingLog, Strike:
		return maxLogBlock
	case Concurrency:
		return maxRecord
	}
	return 0
}

// evict drops the entry nearest to idle of a few: the one whose loss forgives the
// least. (An order of all entries by that time would cost more than it is worth:
// of sixteen, the one to go is among the nearest eighth with a chance of 88 %, and
// an offender goes only if it meets fifteen worse ones.)
func (s *shard) evict() bool {
	victim := s.nearestIdle()
	if victim == 0 {
		return false
	}
	if e := entry(s.slab.at(victim)); s.idle(e) {
		s.counts.expired++
	} else {
		s.counts.evicted++
		s.counts.forgiven += s.usedUnits(e)
	}
	s.dropRef(victim)
	return true
}

// nearestIdle is the one of a few entries, met from a place that wanders over the
// index, that is idle first; 0 when none was met.
func (s *shard) nearestIdle() (nearest ref) {
	soonest, seen := Never, 0
	for range evictTries {
		s.wander = s.wander*6364136223846793005 + 1442695040888963407 // Knuth's MMIX generator
		g, from := s.index.segmentOf(s.wander), int(s.wander>>20%segmentSlots)
		for i := 0; i < segmentSlots && seen < evictLook; i++ {
			pos := (from + i) % segmentSlots
			if g.ctrl[pos] >= slotEmpty {
				continue
			}
			seen++
			if idleNs := s.idleAtNs(s.slab.at(g.refs[pos])); nearest == 0 || idleNs < soonest {
				nearest, soonest = g.refs[pos], idleNs
			}
		}
		if seen == evictLook {
			break
		}
	}
	return nearest
}
