package unitlog

import "github.com/weir-project/weir/engine/internal/arena"

// Log is an exact log of admitted units: their times, and how many at each time. It is a chain of blocks. In an
// entry's state it is head(4) tail(4) units(4) kept(4) lastNs(8). The stored kept packs kept and keptEnd.
//
// Functions pass a Log by pointer, because copying a Log that was just written stalls the processor (failed
// store-to-load forwarding).
type Log struct {
	head, tail arena.Ref
	Units      int64
	kept       int64 // how many of the oldest units are stored already
	keptEnd    int   // the offset in the last block at which the stored units end; 0 if they end before this block
	LastNs     int64 // time of the newest record
}

const (
	StateLen = 24
	keptBits = 20 // MaxLogUnits fits; an offset in a block fits the other 12 bits
	minBlock = 48
	maxBlock = 256 // small, because the first and the last block are half empty on average
)

// Read decodes the log that Write stored in a state.
func Read(b []byte) Log {
	kept := le.Uint32(b[12:])
	return Log{
		head: le.Uint32(b), tail: le.Uint32(b[4:]),
		Units: int64(le.Uint32(b[8:])), kept: int64(kept & (1<<keptBits - 1)), keptEnd: int(kept >> keptBits),
		LastNs: int64(le.Uint64(b[16:])),
	}
}

// Write stores the log in a state, in StateLen bytes.
func (l *Log) Write(b []byte) {
	le.PutUint32(b, l.head)
	le.PutUint32(b[4:], l.tail)
	le.PutUint32(b[8:], uint32(l.Units))
	le.PutUint32(b[12:], uint32(l.kept)|uint32(l.keptEnd)<<keptBits)
	le.PutUint64(b[16:], uint64(l.LastNs))
}

// Append adds units. A time before the newest record is replaced by the time of that record.
func (l *Log) Append(s *arena.Slab, atNs, units int64) {
	atNs = max(atNs, l.LastNs)
	var rec [maxRecordLen]byte
	n := l.next(rec[:], atNs, units)
	if size := l.lacks(s, n); size > 0 {
		l.grow(s, size, atNs)
	}
	tail := block(s.At(l.tail))
	end := tail.end()
	copy(tail[end:], rec[:n])
	tail.setEnd(end + n)
	tail.setUnits(tail.units() + units)
	l.Units += units
	l.LastNs = atNs
}

// next writes the record that Append would add and returns its length.
func (l *Log) next(rec []byte, atNs, units int64) int {
	if l.head == 0 {
		return putRecord(rec, 0, units)
	}
	return putRecord(rec, max(atNs-l.LastNs, 0), units)
}

// Growth returns the size of the block that Append would add, or 0 if the record fits the last block.
func (l *Log) Growth(s *arena.Slab, atNs, units int64) int {
	var rec [maxRecordLen]byte
	return l.lacks(s, l.next(rec[:], atNs, units))
}

// lacks returns the size of the block that a record of some length needs, or 0 if it fits the last block. The
// size is twice that of the last block, so that a short log stays small and a long log has few links.
func (l *Log) lacks(s *arena.Slab, recordLen int) int {
	if l.tail == 0 {
		return minBlock
	}
	b := block(s.At(l.tail))
	if b.end()+recordLen <= b.size() {
		return 0
	}
	return min(2*b.size(), maxBlock)
}

// grow adds an empty block to the end.
func (l *Log) grow(s *arena.Slab, size int, firstNs int64) {
	r := s.Alloc(size)
	b := block(s.At(r))
	b.setNext(0)
	b.setStart(blockHead)
	b.setSize(size)
	b.setEnd(blockHead)
	b.setUnits(0)
	b.setFirst(firstNs)
	if l.tail != 0 {
		block(s.At(l.tail)).setNext(r)
	} else {
		l.head = r
	}
	l.tail, l.keptEnd = r, 0
}

// DropUntil removes the records at or before a time. It first removes records from the first block, one by one.
// Usually a part of this block stays, and then the next block need not be read from memory. Otherwise it frees whole
// blocks.
func (l *Log) DropUntil(s *arena.Slab, untilNs int64) {
	if l.head == 0 {
		return
	}
	if l.LastNs <= untilNs {
		l.Clear(s)
		return
	}
	for b := block(s.At(l.head)); b.firstNs() <= untilNs; b = s.At(l.head) {
		if l.dropWithin(s, b, untilNs) {
			return
		}
		for l.Stale(s, untilNs) {
			l.dropHead(s, s.At(l.head))
		}
	}
}

// Stale reports whether the log begins with a block that has only records at or before a time, and has further
// blocks.
func (l *Log) Stale(s *arena.Slab, untilNs int64) bool {
	if l.head == 0 || l.LastNs <= untilNs {
		return l.head != l.tail
	}
	next := block(s.At(l.head)).next()
	return next != 0 && block(s.At(next)).firstNs() <= untilNs
}

func (l *Log) dropHead(s *arena.Slab, b block) {
	r := l.head
	l.lose(b.units())
	l.head = b.next()
	s.Free(r)
}

// dropWithin removes the records of the first block at or before a time, and frees the block if it has no others. It
// reports whether a record is left in the block.
func (l *Log) dropWithin(s *arena.Slab, b block, untilNs int64) bool {
	var gone int64
	for r := range b.records() {
		if r.AtNs > untilNs {
			b.setStart(r.begin)
			b.setFirst(r.AtNs)
			b.setUnits(b.units() - gone)
			l.lose(gone)
			return true
		}
		gone += r.Units
	}
	l.dropHead(s, b)
	return false
}

// DropOldest removes the oldest n units, fewer than the log has. It does nothing if n is not positive.
func (l *Log) DropOldest(s *arena.Slab, n int64) {
	for n > 0 {
		b := block(s.At(l.head))
		if n >= b.units() {
			n -= b.units()
			l.dropHead(s, b)
			continue
		}
		n -= l.dropRecord(b, n)
	}
}

// dropRecord removes up to n units of the first record of a block that has more than n units.
func (l *Log) dropRecord(b block, n int64) (dropped int64) {
	_, units, next := b.record(b.start())
	if units <= n {
		since, _, _ := b.record(next)
		b.setStart(next)
		b.setFirst(b.firstNs() + since)
		dropped = units
	} else {
		// The new record is not longer than the old one: it has fewer units, and its time difference is 0,
		// because the first record has the time of the block.
		var rec [maxRecordLen]byte
		m := putRecord(rec[:], 0, units-n)
		b.setStart(next - copy(b[next-m:], rec[:m]))
		dropped = n
	}
	b.setUnits(b.units() - dropped)
	l.lose(dropped)
	return dropped
}

// lose records that the oldest n units are gone.
func (l *Log) lose(n int64) { l.Units, l.kept = l.Units-n, max(l.kept-n, 0) }

// UnitsUntil returns how many units were admitted at or before a time.
func (l *Log) UnitsUntil(s *arena.Slab, untilNs int64) (n int64) {
	for r := l.head; r != 0; {
		b := block(s.At(r))
		if b.firstNs() > untilNs {
			break
		}
		r = b.next()
		if r != 0 && block(s.At(r)).firstNs() <= untilNs {
			n += b.units()
			continue
		}
		for rec := range b.records() {
			if rec.AtNs > untilNs {
				return n
			}
			n += rec.Units
		}
	}
	return n
}

// TimeOf returns when the n-th unit, counted from the oldest, was admitted; n is
// in 1..units.
func (l *Log) TimeOf(s *arena.Slab, n int64) int64 {
	for r := l.head; r != 0; {
		b := block(s.At(r))
		if r = b.next(); n > b.units() {
			n -= b.units()
			continue
		}
		for rec := range b.records() {
			if n -= rec.Units; n <= 0 {
				return rec.AtNs
			}
		}
	}
	return l.LastNs
}

// KeepFirst removes all units except the oldest n.
func (l *Log) KeepFirst(s *arena.Slab, n int64) {
	if n <= 0 {
		l.Clear(s)
		return
	}
	l.LastNs = l.TimeOf(s, n)
	l.Units = n
	l.ForgetKept()
	r := l.head
	b := block(s.At(r))
	for n > b.units() {
		n -= b.units()
		r = b.next()
		b = s.At(r)
	}
	rest := b.next()
	b.keepFirst(n)
	b.setNext(0)
	l.tail = r
	s.FreeChain(rest)
}

// Clear frees all blocks.
func (l *Log) Clear(s *arena.Slab) {
	s.FreeChain(l.head)
	*l = Log{}
}

// All iterates over the records, oldest first.
func (l *Log) All(s *arena.Slab) func(yield func(Record) bool) { return l.behind(s, 0) }

// behind iterates over the records after the oldest n units, oldest first. The n-th unit is the last of its record.
func (l *Log) behind(s *arena.Slab, n int64) func(yield func(Record) bool) {
	return func(yield func(Record) bool) {
		for r := l.head; r != 0; {
			b := block(s.At(r))
			if r = b.next(); n >= b.units() {
				n -= b.units()
				continue
			}
			for rec := range b.records() {
				if n > 0 {
					n -= rec.Units
				} else if !yield(rec) {
					return
				}
			}
		}
	}
}

// Newest returns the units of the newest record, or 0 for an empty log.
func (l *Log) Newest(s *arena.Slab) (units int64) {
	if l.tail != 0 {
		for r := range block(s.At(l.tail)).records() {
			units = r.Units
		}
	}
	return units
}

// Bytes returns the size of the blocks.
func (l *Log) Bytes(s *arena.Slab) int { return s.ChainBytes(l.head) }

// First returns the first block, or 0 for an empty log.
func (l *Log) First() arena.Ref { return l.head }

// MoveBlocks moves the blocks off pages that are being emptied.
func (l *Log) MoveBlocks(s *arena.Slab) {
	if l.head != 0 {
		l.head, l.tail = s.MoveChain(l.head)
	}
}

// Prefetch reads both ends of the log, which most operations access.
func (l *Log) Prefetch(s *arena.Slab) uint64 {
	if l.head == 0 {
		return 0
	}
	return uint64(s.At(l.head)[0]) + uint64(s.At(l.tail)[0])
}
