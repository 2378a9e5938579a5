package engine

import "encoding/binary"

// unitLog is an exact log of admitted units: when, and how many. It is a chain of
// slab slots ("blocks"); within a block each record is the time since the record
// before it, shifted left by one, as a varint, and, when the lowest bit of that is
// set, the number of units as another (else it is one). A unit admitted alone
// costs five to seven bytes.
//
// A block starts with next(4) start(2) end(2) units(4) firstNs(8): its successor,
// where its live records begin and end, how many units they hold and the time of
// the first. The first record's own difference is meaningless.
//
// The log as stored in an entry's state is head(4) tail(4) units(8) lastNs(8).
type unitLog struct {
	head, tail ref
	units      int64
	lastNs     int64 // time of the newest record
}

const (
	logLen       = 24
	logBlockHead = 20
	minLogBlock  = 48
	maxLogBlock  = 256 // small enough that half-used ends stay cheap
	maxRecordLen = 2 * binary.MaxVarintLen64
)

func readLog(b []byte) unitLog {
	return unitLog{
		head: le.Uint32(b), tail: le.Uint32(b[4:]),
		units: int64(le.Uint64(b[8:])), lastNs: int64(le.Uint64(b[16:])),
	}
}

func (l unitLog) write(b []byte) {
	le.PutUint32(b, l.head)
	le.PutUint32(b[4:], l.tail)
	le.PutUint64(b[8:], uint64(l.units))
	le.PutUint64(b[16:], uint64(l.lastNs))
}

type logBlock []byte

func (b logBlock) next() ref         { return le.Uint32(b) }
func (b logBlock) start() int        { return int(le.Uint16(b[4:])) }
func (b logBlock) end() int          { return int(le.Uint16(b[6:])) }
func (b logBlock) units() int64      { return int64(le.Uint32(b[8:])) }
func (b logBlock) firstNs() int64    { return int64(le.Uint64(b[12:])) }
func (b logBlock) setNext(r ref)     { le.PutUint32(b, r) }
func (b logBlock) setStart(i int)    { le.PutUint16(b[4:], uint16(i)) }
func (b logBlock) setEnd(i int)      { le.PutUint16(b[6:], uint16(i)) }
func (b logBlock) setUnits(n int64)  { le.PutUint32(b[8:], uint32(n)) }
func (b logBlock) setFirst(ns int64) { le.PutUint64(b[12:], uint64(ns)) }

// record reads the record at i: the time since the one before, its units and
// where the next one begins.
func (b logBlock) record(i int) (sinceNs, units int64, next int) {
	v, n := binary.Uvarint(b[i:])
	i += n
	if v&1 == 0 {
		return int64(v >> 1), 1, i
	}
	u, n := binary.Uvarint(b[i:])
	return int64(v >> 1), int64(u), i + n
}

// records calls visit for each record of the block, oldest first, with where the
// record after it begins, until visit returns false.
func (b logBlock) records(visit func(atNs, units int64, next int) bool) {
	at, i, end := b.firstNs(), b.start(), b.end()
	for first := true; i < end; first = false {
		since, units, next := b.record(i)
		if !first {
			at += since
		}
		if !visit(at, units, next) {
			return
		}
		i = next
	}
}

// append adds units at a time not before the newest record.
func (l *unitLog) append(s *slab, atNs, units int64) {
	if l.head == 0 {
		l.lastNs = atNs
	}
	var rec [maxRecordLen]byte
	n := putRecord(rec[:], atNs-l.lastNs, units)
	var tail logBlock
	if l.tail != 0 {
		tail = s.slot(l.tail)
	}
	if tail == nil || tail.end()+n > len(tail) {
		tail = l.grow(s, atNs)
	}
	end := tail.end()
	copy(tail[end:], rec[:n])
	tail.setEnd(end + n)
	tail.setUnits(tail.units() + units)
	l.units += units
	l.lastNs = atNs
}

func putRecord(b []byte, sinceNs, units int64) int {
	if units == 1 {
		return binary.PutUvarint(b, uint64(sinceNs)<<1)
	}
	n := binary.PutUvarint(b, uint64(sinceNs)<<1|1)
	return n + binary.PutUvarint(b[n:], uint64(units))
}

// grow adds an empty block to the end: twice the last one, so that a short log
// stays small and a long one has few links.
func (l *unitLog) grow(s *slab, firstNs int64) logBlock {
	size := minLogBlock
	if l.tail != 0 {
		size = min(2*s.len(l.tail), maxLogBlock)
	}
	r := s.alloc(size)
	b := logBlock(s.slot(r))
	b.setNext(0)
	b.setStart(logBlockHead)
	b.setEnd(logBlockHead)
	b.setUnits(0)
	b.setFirst(firstNs)
	if l.tail != 0 {
		logBlock(s.at(l.tail)).setNext(r)
	} else {
		l.head = r
	}
	l.tail = r
	return b
}

// dropUntil forgets the records at or before a time. Whole blocks go at once.
func (l *unitLog) dropUntil(s *slab, untilNs int64) {
	if l.head == 0 {
		return
	}
	if l.lastNs <= untilNs {
		l.clear(s)
		return
	}
	for {
		b := logBlock(s.at(l.head))
		if b.firstNs() > untilNs {
			return
		}
		next := b.next()
		if next == 0 || logBlock(s.at(next)).firstNs() > untilNs {
			l.dropWithin(s, b, untilNs)
			return
		}
		l.dropHead(s, b)
	}
}

func (l *unitLog) dropHead(s *slab, b logBlock) {
	r := l.head
	l.units -= b.units()
	l.head = b.next()
	s.free(r)
}

// dropWithin forgets records of the first block, and the block when none is left.
func (l *unitLog) dropWithin(s *slab, b logBlock, untilNs int64) {
	var gone int64
	start, first := b.end(), int64(0)
	at := b.start()
	b.records(func(atNs, units int64, next int) bool {
		if atNs > untilNs {
			start, first = at, atNs
			return false
		}
		gone += units
		at = next
		return true
	})
	if start == b.end() {
		l.dropHead(s, b)
		return
	}
	b.setStart(start)
	b.setFirst(first)
	b.setUnits(b.units() - gone)
	l.units -= gone
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
	l.units -= dropped
	return dropped
}

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
		b.records(func(atNs, units int64, _ int) bool {
			if atNs <= untilNs {
				n += units
			}
			return atNs <= untilNs
		})
	}
	return n
}

// timeOf returns when the n-th unit, counted from the oldest, was admitted; n is
// in 1..units.
func (l *unitLog) timeOf(s *slab, n int64) (ns int64) {
	for r := l.head; r != 0; {
		b := logBlock(s.at(r))
		if n > b.units() {
			n -= b.units()
			r = b.next()
			continue
		}
		b.records(func(atNs, units int64, _ int) bool {
			n -= units
			ns = atNs
			return n > 0
		})
		return ns
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

// keepFirst cuts a block to its oldest n units, n in 1..units. Cutting within a
// record rewrites its units in place: a smaller number is not longer, but a
// record with units is longer than one without, so it keeps the explicit form.
func (b logBlock) keepFirst(n int64) {
	left, begin := n, b.start()
	b.records(func(_, units int64, next int) bool {
		if units < left {
			left -= units
			begin = next
			return true
		}
		if units > left {
			since, _, _ := b.record(begin)
			var rec [maxRecordLen]byte
			m := binary.PutUvarint(rec[:], uint64(since)<<1|1)
			m += binary.PutUvarint(rec[m:], uint64(left))
			next = begin + copy(b[begin:], rec[:m])
		}
		b.setEnd(next)
		return false
	})
	b.setUnits(n)
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

// each visits all records, oldest first.
func (l *unitLog) each(s *slab, visit func(atNs, units int64)) {
	for r := l.head; r != 0; {
		b := logBlock(s.at(r))
		b.records(func(atNs, units int64, _ int) bool {
			visit(atNs, units)
			return true
		})
		r = b.next()
	}
}

// bytes is the room the blocks take.
func (l *unitLog) bytes(s *slab) (n int) {
	for r := l.head; r != 0; r = logBlock(s.at(r)).next() {
		n += s.len(r)
	}
	return n
}
