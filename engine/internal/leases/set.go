package leases

import (
	"encoding/binary"

	"github.com/weir-project/weir/engine/internal/arena"
	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/codec"
	"github.com/weir-project/weir/engine/internal/rule"
)

// Set holds the leases of one key in a chain of blocks, in no order. Its stored form in an entry's state is
// head(4) count(4) units(8) soonest(8).
type Set struct {
	head      arena.Ref
	Count     uint32
	Units     int64 // the sum of all leases, including expired leases until Sweep or Hide
	SoonestNs int64 // no lease expires before this time
	hiddenNs  int64 // All omits leases that expire at or before this time; set by Hide, not stored
}

const (
	StateLen = 24
	minBlock = 64
)

// Read decodes the set that Write stored in a state.
func Read(b []byte) Set {
	return Set{
		head: le.Uint32(b), Count: le.Uint32(b[4:]),
		Units: int64(le.Uint64(b[8:])), SoonestNs: int64(le.Uint64(b[16:])),
	}
}

// Write stores the set in a state, in StateLen bytes.
func (l Set) Write(b []byte) {
	le.PutUint32(b, l.head)
	le.PutUint32(b[4:], l.Count)
	le.PutUint64(b[8:], uint64(l.Units))
	le.PutUint64(b[16:], uint64(l.SoonestNs))
}

// Place is the position of a lease. The zero Place means none.
type Place struct {
	block, before arena.Ref // before: the block that links to this one, or 0
	at            int
}

// All iterates over the leases and their positions.
func (l *Set) All(s *arena.Slab) func(yield func(Place, Lease) bool) {
	return func(yield func(Place, Lease) bool) {
		before := arena.Ref(0)
		for r := l.head; r != 0; {
			b := block(s.At(r))
			for i := blockHead; i < b.end(); {
				x, next := b.lease(i)
				if x.ExpiresNs > l.hiddenNs && !yield(Place{r, before, i}, x) {
					return
				}
				i = next
			}
			before, r = r, b.next()
		}
	}
}

// Find returns the lease with this id, even if it has expired and was not removed or hidden.
func (l *Set) Find(s *arena.Slab, id []byte) (found Lease, at Place, ok bool) {
	for at, x := range l.All(s) {
		if string(x.ID) == string(id) {
			return x, at, true
		}
	}
	return Lease{}, Place{}, false
}

// Add adds a lease whose id is not in the set.
func (l *Set) Add(s *arena.Slab, x Lease) {
	if size := l.Growth(s, x.ID); size > 0 {
		l.grow(s, size)
	}
	block(s.At(l.head)).add(x)
	if l.Count == 0 {
		l.SoonestNs = arith.Never
	}
	l.Count++
	l.Units += x.Units
	l.SoonestNs = min(l.SoonestNs, x.ExpiresNs)
}

// Growth returns the size of the block that a lease with this id needs, or 0 if it fits the first block.
func (l *Set) Growth(s *arena.Slab, id []byte) int {
	n := leaseHead + len(id)
	if l.head == 0 {
		return max(minBlock, blockHead+n)
	}
	size := s.Len(l.head)
	if block(s.At(l.head)).end()+n <= size {
		return 0
	}
	return max(blockHead+n, min(2*size, arena.MaxRecord))
}

// grow puts a new block in front.
func (l *Set) grow(s *arena.Slab, size int) {
	r := s.Alloc(size)
	b := block(s.At(r))
	b.setNext(l.head)
	b.setEnd(blockHead)
	l.head = r
}

// Renew sets a lease's expiry.
func (l *Set) Renew(s *arena.Slab, at Place, expiresNs int64) {
	le.PutUint64(s.At(at.block)[at.at:], uint64(expiresNs))
	l.SoonestNs = min(l.SoonestNs, expiresNs)
}

// SetUnits sets a lease's units.
func (l *Set) SetUnits(s *arena.Slab, at Place, units int64) {
	b := s.At(at.block)[at.at+8:]
	l.Units += units - int64(le.Uint64(b))
	le.PutUint64(b, uint64(units))
}

// Remove removes a lease, and its block if that becomes empty.
func (l *Set) Remove(s *arena.Slab, at Place) {
	b := block(s.At(at.block))
	l.Count--
	l.Units -= b.remove(at.at)
	if b.end() == blockHead {
		l.unlink(s, at.block, at.before)
	}
}

// Sweep removes the leases that have expired.
func (l *Set) Sweep(s *arena.Slab, nowNs int64) {
	if l.Count == 0 || nowNs < l.SoonestNs {
		return
	}
	l.SoonestNs = arith.Never
	before := arena.Ref(0)
	for r := l.head; r != 0; {
		b := block(s.At(r))
		l.sweepBlock(b, nowNs)
		next := b.next()
		if b.end() > blockHead {
			before = r
		} else {
			l.unlink(s, r, before)
		}
		r = next
	}
}

// Hide is Sweep for a reader: expired leases stay in their blocks, but are no longer counted or returned.
func (l *Set) Hide(s *arena.Slab, nowNs int64) {
	if l.Count == 0 || nowNs < l.SoonestNs {
		return
	}
	l.hiddenNs, l.Count, l.Units = nowNs, 0, 0
	for _, x := range l.All(s) {
		l.Count++
		l.Units += x.Units
	}
}

// sweepBlock moves the live leases of a block together.
func (l *Set) sweepBlock(b block, nowNs int64) {
	keep := blockHead
	for i := blockHead; i < b.end(); {
		x, next := b.lease(i)
		if x.ExpiresNs <= nowNs {
			l.Count--
			l.Units -= x.Units
		} else {
			l.SoonestNs = min(l.SoonestNs, x.ExpiresNs)
			keep += copy(b[keep:], b[i:next])
		}
		i = next
	}
	b.setEnd(keep)
}

// unlink frees an empty block; before is the block that links to it, or 0.
func (l *Set) unlink(s *arena.Slab, r, before arena.Ref) {
	next := block(s.At(r)).next()
	if before == 0 {
		l.head = next
	} else {
		block(s.At(before)).setNext(next)
	}
	s.Free(r)
}

// LastExpiryNs returns the latest expiry of a lease, ignoring the lease at the position except. It is arith.Never
// if a lease has no end, and 0 without leases.
func (l *Set) LastExpiryNs(s *arena.Slab, except Place) (last int64) {
	for at, x := range l.All(s) {
		if at != except {
			last = max(last, x.ExpiresNs)
		}
	}
	return last
}

// Clear frees all blocks.
func (l *Set) Clear(s *arena.Slab) {
	s.FreeChain(l.head)
	*l = Set{}
}

// Bytes returns the size of the blocks.
func (l *Set) Bytes(s *arena.Slab) int { return s.ChainBytes(l.head) }

// First returns the first block, or 0 for an empty set.
func (l *Set) First() arena.Ref { return l.head }

// MoveBlocks moves the blocks off pages that are being emptied.
func (l *Set) MoveBlocks(s *arena.Slab) {
	if l.head != 0 {
		l.head, _ = s.MoveChain(l.head)
	}
}

// IDAt returns the id of the lease at a position. The caller may overwrite it.
func (l *Set) IDAt(s *arena.Slab, at Place) []byte {
	x, _ := block(s.At(at.block)).lease(at.at)
	return x.ID
}

// AppendStored appends the stored form of the set.
func (l *Set) AppendStored(b []byte, s *arena.Slab) []byte {
	b = binary.AppendVarint(b, int64(l.Count))
	for _, x := range l.All(s) {
		b = binary.AppendVarint(b, x.ExpiresNs)
		b = binary.AppendVarint(b, x.Units)
		b = binary.AppendVarint(b, int64(len(x.ID)))
		b = append(b, x.ID...)
	}
	return b
}

// Load adds the leases of a stored set, with ids of shortest to longest bytes and at least least units.
func (l *Set) Load(s *arena.Slab, d *codec.Decoder, shortest, longest, least int64) {
	for count := d.Within(0, rule.MaxHolders); int64(l.Count) < count && !d.Bad; {
		x := Lease{ExpiresNs: d.Within(1, arith.Never), Units: d.Within(least, rule.MaxUnits)}
		x.ID = d.Bytes(d.Within(shortest, longest))
		if !d.Bad {
			l.Add(s, x)
		}
	}
}
