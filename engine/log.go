package engine

// unitLog is an exact log of admitted units: when, and how many. It is a chain of
// blocks. As stored in an entry's state it is head(4) tail(4) units(4) kept(4) lastNs(8),
// where kept is both kept and keptEnd.
//
// It is handed on by pointer: a copy reads what was just written in larger pieces, and
// the processor then waits for all writes before.
type unitLog struct {
	head, tail ref
	units      int64
	kept       int64 // how many of the oldest units need not be drained again
	keptEnd    int   // where in the last block they end; 0 if they end before it
	lastNs     int64 // time of the newest record
}

const (
	logLen      = 24
	keptBits    = 20 // MaxLogUnits fits, and a place in a block into the rest
	minLogBlock = 48
	maxLogBlock = 256 // small enough that half-used ends stay cheap
)

func readLog(b []byte) unitLog {
	kept := le.Uint32(b[12:])
	return unitLog{
		head: le.Uint32(b), tail: le.Uint32(b[4:]),
		units: int64(le.Uint32(b[8:])), kept: int64(kept & (1<<keptBits - 1)), keptEnd: int(kept >> keptBits),
		lastNs: int64(le.Uint64(b[16:])),
	}
}

func (l *unitLog) write(b []byte) {
	le.PutUint32(b, l.head)
	le.PutUint32(b[4:], l.tail)
	le.PutUint32(b[8:], uint32(l.units))
	le.PutUint32(b[12:], uint32(l.kept)|uint32(l.keptEnd)<<keptBits)
	le.PutUint64(b[16:], uint64(l.lastNs))
}

// append adds units. A time before the newest record counts as that record's.
func (l *unitLog) append(s *slab, atNs, units int64) {
	atNs = max(atNs, l.lastNs)
	var rec [maxRecordLen]byte
	n := l.next(rec[:], atNs, units)
	if size := l.lacks(s, n); size > 0 {
		l.grow(s, size, atNs)
	}
	tail := logBlock(s.at(l.tail))
	end := tail.end()
	copy(tail[end:], rec[:n])
	tail.setEnd(end + n)
	tail.setUnits(tail.units() + units)
	l.units += units
	l.lastNs = atNs
}

// next writes the record that append would add and returns its length.
func (l *unitLog) next(rec []byte, atNs, units int64) int {
	if l.head == 0 {
		return putRecord(rec, 0, units)
	}
	return putRecord(rec, max(atNs-l.lastNs, 0), units)
}

// growth is the size of the block that appending would add; 0 when the last block
// has room.
func (l *unitLog) growth(s *slab, atNs, units int64) int {
	var rec [maxRecordLen]byte
	return l.lacks(s, l.next(rec[:], atNs, units))
}

// lacks is the size of the block it takes to add a record of some length, 0 when
// the last block has room: twice that of the last one, so that a short log stays
// small and a long one has few links.
func (l *unitLog) lacks(s *slab, recordLen int) int {
	if l.tail == 0 {
		return minLogBlock
	}
	b := logBlock(s.at(l.tail))
	if b.end()+recordLen <= b.size() {
		return 0
	}
	return min(2*b.size(), maxLogBlock)
}

// grow adds an empty block to the end.
func (l *unitLog) grow(s *slab, size int, firstNs int64) {
	r := s.alloc(size)
	b := logBlock(s.at(r))
	b.setNext(0)
	b.setStart(logBlockHead)
	b.setSize(size)
	b.setEnd(logBlockHead)
	b.setUnits(0)
	b.setFirst(firstNs)
	if l.tail != 0 {
		logBlock(s.at(l.tail)).setNext(r)
	} else {
		l.head = r
	}
	l.tail, l.keptEnd = r, 0
}

// dropUntil forgets the records at or before a time. Whole blocks go at once, but for the
// first: most often something of it stays, and then the next need not come from memory.
func (l *unitLog) dropUntil(s *slab, untilNs int64) {
	if l.head == 0 {
		return
	}
	if l.lastNs <= untilNs {
		l.clear(s)
		return
	}
	for b := logBlock(s.at(l.head)); b.firstNs() <= untilNs; b = s.at(l.head) {
		if l.dropWithin(s, b, untilNs) {
			return
		}
		for l.stale(s, untilNs) {
			l.dropHead(s, s.at(l.head))
		}
	}
}

// stale reports whether a whole block has records only at or before a time.
func (l *unitLog) stale(s *slab, untilNs int64) bool {
	if l.head == 0 || l.lastNs <= untilNs {
		return l.head != l.tail
	}
	next := logBlock(s.at(l.head)).next()
	return next != 0 && logBlock(s.at(next)).firstNs() <= untilNs
}

func (l *unitLog) dropHead(s *slab, b logBlock) {
	r := l.head
	l.lose(b.units())
	l.head = b.next()
	s.free(r)
}

// dropWithin forgets records of the first block, and the block when none is left; it
// reports whether one is.
func (l *unitLog) dropWithin(s *slab, b logBlock, untilNs int64) bool {
	var gone int64
	for r := range b.records() {
		if r.atNs > untilNs {
			b.setStart(r.begin)
			b.setFirst(r.atNs)
			b.setUnits(b.units() - gone)
			l.lose(gone)
			return true
		}
		gone += r.units
	}
	l.dropHead(s, b)
	return false
}

// dropOldest forgets n units, fewer than there are; nothing when n is not positive.
func (l *unitLog) dropOldest(s *slab, n int64) {
	for n > 0 {
		b := logBlock(s.at(l.head))
		if n >= b.units() {
			n -= b.units()
			l.dropHead(s, b)
			continue
		}
		n -= l.dropRecord(b, n)
	}
}

// dropRecord forgets up to n units of a block's first record; the block has more.
func (l *unitLog) dropRecord(b logBlock, n int64) (dropped int64) {
	_, units, next := b.record(b.start())
	if units <= n {
		since, _, _ := b.record(next)
		b.setStart(next)
		b.setFirst(b.firstNs() + since)
		dropped = units
	} else {
		// What is left of the record is not longer than it was: its time is the
		// block's own.
		var rec [maxRecordLen]byte
		m := putRecord(rec[:], 0, units-n)
		b.setStart(next - copy(b[next-m:], rec[:m]))
		dropped = n
	}
	b.setUnits(b.units() - dropped)
	l.lose(dropped)
	return dropped
}

// forgetKept makes all units ones that are to be drained.
func (l *unitLog) forgetKept() { l.kept, l.keptEnd = 0, 0 }

// lose notes that the oldest n units are gone.
func (l *unitLog) lose(n int64) { l.units, l.kept = l.units-n, max(l.kept-n, 0) }

// unitsUntil returns how many units were admitted at or before a time.
func (l *unitLog) unitsUntil(s *slab, untilNs int64) (n int64) {
	for r := l.head; r != 0; {
		b := logBlock(s.at(r))
		if b.firstNs() > untilNs {
			break
		}
		r = b.next()
		if r != 0 && logBlock(s.at(r)).firstNs() <= untilNs {
			n += b.units()
			continue
		}
		for rec := range b.records() {
			if rec.atNs > untilNs {
				return n
			}
			n += rec.units
		}
	}
	return n
}

// timeOf returns when the n-th unit, counted from the oldest, was admitted; n is
// in 1..units.
func (l *unitLog) timeOf(s *slab, n int64) int64 {
	for r := l.head; r != 0; {
		b := logBlock(s.at(r))
		if r = b.next(); n > b.units() {
			n -= b.units()
			continue
		}
		for rec := range b.records() {
			if n -= rec.units; n <= 0 {
				return rec.atNs
			}
		}
	}
	return l.lastNs
}

// keepFirst forgets all but the oldest n units.
func (l *unitLog) keepFirst(s *slab, n int64) {
	if n <= 0 {
		l.clear(s)
		return
	}
	l.lastNs = l.timeOf(s, n)
	l.units = n
	l.forgetKept()
	r := l.head
	b := logBlock(s.at(r))
	for n > b.units() {
		n -= b.units()
		r = b.next()
		b = s.at(r)
	}
	rest := b.next()
	b.keepFirst(n)
	b.setNext(0)
	l.tail = r
	for rest != 0 {
		next := logBlock(s.at(rest)).next()
		s.free(rest)
		rest = next
	}
}

// clear frees all blocks.
func (l *unitLog) clear(s *slab) {
	for r := l.head; r != 0; {
		next := logBlock(s.at(r)).next()
		s.free(r)
		r = next
	}
	*l = unitLog{}
}

// all iterates over the records, oldest first.
func (l *unitLog) all(s *slab) func(yield func(logRecord) bool) { return l.behind(s, 0) }

// behind iterates over the records that are not of the oldest n units, oldest first.
func (l *unitLog) behind(s *slab, n int64) func(yield func(logRecord) bool) {
	return func(yield func(logRecord) bool) {
		for r := l.head; r != 0; {
			b := logBlock(s.at(r))
			if r = b.next(); n >= b.units() {
				n -= b.units()
				continue
			}
			for rec := range b.records() {
				if n > 0 {
					n -= rec.units
				} else if !yield(rec) {
					return
				}
			}
		}
	}
}

// newest returns the units of the newest record, 0 of an empty log.
func (l *unitLog) newest(s *slab) (units int64) {
	if l.tail != 0 {
		for r := range logBlock(s.at(l.tail)).records() {
			units = r.units
		}
	}
	return units
}

// bytes is the room the blocks take.
func (l *unitLog) bytes(s *slab) (n int) {
	for r := l.head; r != 0; r = logBlock(s.at(r)).next() {
		n += s.len(r)
	}
	return n
}
