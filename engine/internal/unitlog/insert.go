package unitlog

import (
	"math/bits"
	"slices"

	"github.com/weir-project/weir/engine/internal/arena"
)

// Insert adds one unit to a log whose records have one unit each, after the records of the same time and before
// later records.
func (l *Log) Insert(s *arena.Slab, at int64) {
	if l.head == 0 || at >= l.LastNs {
		l.Append(s, at, 1)
		return
	}
	b := block(s.At(l.blockUntil(s, at)))
	var room [maxBlock]int64 // a record takes a byte or more
	times := b.times(room[:0])
	i, _ := slices.BinarySearch(times, at+1)
	times = slices.Insert(times, i, at)
	l.Units++
	if recordsLen(times) > b.size()-blockHead {
		times = l.split(s, b, times)
	}
	b.fill(times)
}

// InsertGrowth returns how much memory Insert may take at most, after DropUntil.
func (l *Log) InsertGrowth(s *arena.Slab, untilNs, at int64) int {
	switch {
	case l.LastNs <= untilNs:
		return minBlock // DropUntil empties the log
	case at < l.LastNs:
		return maxBlock
	}
	return l.Growth(s, at, 1)
}

// blockUntil returns the last block that begins at or before a time, or the first block.
func (l *Log) blockUntil(s *arena.Slab, at int64) arena.Ref {
	if block(s.At(l.tail)).firstNs() <= at { // the common case, because the clocks of clients differ little
		return l.tail
	}
	r := l.head
	for next := block(s.At(r)).next(); next != 0 && block(s.At(next)).firstNs() <= at; {
		r, next = next, block(s.At(next)).next()
	}
	return r
}

// split moves the later part of a block's times to a new block behind it, and returns the earlier part. Both parts
// have about the same length. Each part fits its block, because a record has at most a quarter of the shortest
// block.
func (l *Log) split(s *arena.Slab, b block, times []int64) []int64 {
	n, half := 1, recordsLen(times)/2
	for recordsLen(times[:n+1]) <= half {
		n++
	}
	size := min(2*b.size(), maxBlock)
	r := s.Alloc(size)
	behind := block(s.At(r))
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
func (b block) times(to []int64) []int64 {
	for r := range b.records() {
		to = append(to, r.AtNs)
	}
	return to
}

// fill replaces the records of the block by one unit at each of these times. The times ascend, and their records fit.
func (b block) fill(times []int64) {
	end, last := blockHead, times[0]
	for _, at := range times {
		end += putRecord(b[end:], at-last, 1)
		last = at
	}
	b.setStart(blockHead)
	b.setEnd(end)
	b.setUnits(int64(len(times)))
	b.setFirst(times[0])
}

// recordsLen returns how many bytes fill writes.
func recordsLen(times []int64) (n int) {
	last := times[0]
	for _, at := range times {
		n += max(bits.Len64(uint64(at-last)<<1)+6, 7) / 7
		last = at
	}
	return n
}
