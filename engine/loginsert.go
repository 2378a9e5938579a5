package engine

import (
	"math/bits"
	"slices"
)

// insert adds one unit to a log whose records have one unit each, behind those of the same
// time and before later ones.
func (l *unitLog) insert(s *slab, at int64) {
	if l.head == 0 || at >= l.lastNs {
		l.append(s, at, 1)
		return
	}
	b := logBlock(s.at(l.blockUntil(s, at)))
	var room [maxLogBlock]int64 // a record takes a byte or more
	times := b.times(room[:0])
	i, _ := slices.BinarySearch(times, at+1)
	times = slices.Insert(times, i, at)
	l.units++
	if recordsLen(times) > b.size()-logBlockHead {
		times = l.split(s, b, times)
	}
	b.fill(times)
}

// blockUntil is the last block that begins at or before a time, or the first block.
func (l *unitLog) blockUntil(s *slab, at int64) ref {
	if logBlock(s.at(l.tail)).firstNs() <= at { // clocks differ little, and it is most often this one
		return l.tail
	}
	r := l.head
	for next := logBlock(s.at(r)).next(); next != 0 && logBlock(s.at(next)).firstNs() <= at; {
		r, next = next, logBlock(s.at(next)).next()
	}
	return r
}

// split moves the later part of a block's times to a new block behind it, and returns the
// others. The parts are about as long, so that each fits: a record has at most a quarter of
// the shortest block.
func (l *unitLog) split(s *slab, b logBlock, times []int64) []int64 {
	n, half := 1, recordsLen(times)/2
	for recordsLen(times[:n+1]) <= half {
		n++
	}
	size := min(2*b.size(), maxLogBlock)
	r := s.alloc(size)
	behind := logBlock(s.at(r))
	behind.setSize(size)
	behind.setNext(b.next())
	behind.fill(times[n:])
	if b.next() == 0 {
		l.tail = r
	}
	b.setNext(r)
	return times[:n]
}

// times appends the times of the block's records.
func (b logBlock) times(to []int64) []int64 {
	for r := range b.records() {
		to = append(to, r.atNs)
	}
	return to
}

// fill makes the block hold a unit at each of these times, ascending, which fit.
func (b logBlock) fill(times []int64) {
	end, last := logBlockHead, times[0]
	for _, at := range times {
		end += putRecord(b[end:], at-last, 1)
		last = at
	}
	b.setStart(logBlockHead)
	b.setEnd(end)
	b.setUnits(int64(len(times)))
	b.setFirst(times[0])
}

// recordsLen is how many bytes fill writes.
func recordsLen(times []int64) (n int) {
	last := times[0]
	for _, at := range times {
		n += max(bits.Len64(uint64(at-last)<<1)+6, 7) / 7
		last = at
	}
	return n
}
