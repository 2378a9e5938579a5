package unitlog

import (
	"encoding/binary"
	"math/bits"

	"github.com/weir-project/weir/engine/internal/arena"
)

// block is a slab slot with a part of a log. A record is a varint: the time since the previous record, shifted left
// by one. If its lowest bit is set, a second varint contains the number of units; otherwise the record has one unit.
// A unit admitted alone costs five to seven bytes.
//
// A block starts with next(4) start(2) size and end(2) units(4) firstNs(8): the next block, the bounds of the live
// records, the size of the block, the number of units in the records and the time of the first record. The time
// difference in the first record has no meaning.
type block []byte

const (
	blockHead    = 20
	maxRecordLen = 2 * binary.MaxVarintLen64

	blockEndBits = 9 // maxBlock fits
	blockEndMask = 1<<blockEndBits - 1

	onesBits = 0x0101010101010101
	msbBits  = 0x8080808080808080
)

func (b block) next() arena.Ref     { return le.Uint32(b) }
func (b block) start() int          { return int(le.Uint16(b[4:])) }
func (b block) end() int            { return int(le.Uint16(b[6:]) & blockEndMask) }
func (b block) size() int           { return int(le.Uint16(b[6:])>>blockEndBits) * 8 }
func (b block) units() int64        { return int64(le.Uint32(b[8:])) }
func (b block) firstNs() int64      { return int64(le.Uint64(b[12:])) }
func (b block) setNext(r arena.Ref) { le.PutUint32(b, r) }
func (b block) setStart(i int)      { le.PutUint16(b[4:], uint16(i)) }
func (b block) setEnd(i int)        { le.PutUint16(b[6:], le.Uint16(b[6:])&^blockEndMask|uint16(i)) }
func (b block) setSize(n int)       { le.PutUint16(b[6:], uint16(n/8)<<blockEndBits) }
func (b block) setUnits(n int64)    { le.PutUint32(b[8:], uint32(n)) }
func (b block) setFirst(ns int64)   { le.PutUint64(b[12:], uint64(ns)) }

// record reads the record at i: the time since the previous record, its units, and the start of the next record.
func (b block) record(i int) (sinceNs, units int64, next int) {
	v, n := uvarint(b[i:])
	i += n
	if v&1 == 0 {
		return int64(v >> 1), 1, i
	}
	u, n := uvarint(b[i:])
	return int64(v >> 1), int64(u), i + n
}

// uvarint is binary.Uvarint, but reads up to eight bytes at once instead of one by one. Most numbers in a block have
// five bytes.
func uvarint(b []byte) (v uint64, n int) {
	if len(b) < 8 {
		return binary.Uvarint(b)
	}
	v = le.Uint64(b)
	ends := ^v & msbBits
	if ends == 0 {
		return binary.Uvarint(b)
	}
	end := bits.TrailingZeros64(ends) + 1 // in bits
	v &= onesBits * 0x7f & (1<<end - 1)
	v = v&0x007f007f007f007f | v&0x7f007f007f007f00>>1
	v = v&0x00003fff00003fff | v&0x3fff00003fff0000>>2
	return v&0x0fffffff | v>>32<<28, end / 8
}

func putRecord(b []byte, sinceNs, units int64) int {
	if units == 1 {
		return binary.PutUvarint(b, uint64(sinceNs)<<1)
	}
	n := binary.PutUvarint(b, uint64(sinceNs)<<1|1)
	return n + binary.PutUvarint(b[n:], uint64(units))
}

// Record is a record of a block: the units admitted at a time, and its position.
type Record struct {
	AtNs, Units int64
	begin, end  int
}

// records iterates over the records of the block, oldest first.
func (b block) records() func(yield func(Record) bool) {
	return func(yield func(Record) bool) {
		at, end := b.firstNs(), b.end()
		for i, first := b.start(), true; i < end; first = false {
			since, units, next := b.record(i)
			if !first {
				at += since
			}
			if !yield(Record{at, units, i, next}) {
				return
			}
			i = next
		}
	}
}

// appendFrom appends the stored form of the records from i on. lastNs is the time of the last record. The records
// contain time differences, so the first time follows from lastNs.
func (b block) appendFrom(to []byte, i int, lastNs int64) []byte {
	end := b.end()
	for j := i; j < end; {
		sinceNs, _, next := b.record(j)
		lastNs -= sinceNs
		j = next
	}
	for i < end {
		sinceNs, units, next := b.record(i)
		to = binary.AppendVarint(binary.AppendVarint(to, lastNs+sinceNs), units)
		lastNs, i = 0, next
	}
	return to
}

// keepFirst cuts a block to its oldest n units, n in 1..units. If the cut is within a record, keepFirst
// writes the remaining units in place, as a second varint even for one unit. A smaller number is not
// longer, so the new record fits.
func (b block) keepFirst(n int64) {
	left := n
	for r := range b.records() {
		if r.Units < left {
			left -= r.Units
			continue
		}
		if r.Units > left {
			since, _, _ := b.record(r.begin)
			var rec [maxRecordLen]byte
			m := binary.PutUvarint(rec[:], uint64(since)<<1|1)
			m += binary.PutUvarint(rec[m:], uint64(left))
			r.end = r.begin + copy(b[r.begin:], rec[:m])
		}
		b.setEnd(r.end)
		break
	}
	b.setUnits(n)
}
