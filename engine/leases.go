package engine

import (
	"cmp"
	"slices"
)

// leaseSet holds the leases of one key in a chain of slab slots. A slot starts
// with next(4) end(2) and goes on with leases, each expires(8) units(8) idLen(1)
// id. Their order means nothing.
//
// As stored in an entry's state it is head(4) count(4) units(8) soonest(8).
type leaseSet struct {
	head      ref
	count     uint32
	units     int64 // held in all, expired leases included until swept
	soonestNs int64 // no lease expires before
}

type lease struct {
	expiresNs int64 // Never: held until released
	units     int64
	id        []byte
}

const (
	leasesLen      = 24
	leaseBlockHead = 8
	leaseHead      = 17
	minLeaseBlock  = 64
)

func readLeases(b []byte) leaseSet {
	return leaseSet{
		head: le.Uint32(b), count: le.Uint32(b[4:]),
		units: int64(le.Uint64(b[8:])), soonestNs: int64(le.Uint64(b[16:])),
	}
}

func (l leaseSet) write(b []byte) {
	le.PutUint32(b, l.head)
	le.PutUint32(b[4:], l.count)
	le.PutUint64(b[8:], uint64(l.units))
	le.PutUint64(b[16:], uint64(l.soonestNs))
}

type leaseBlock []byte

func (b leaseBlock) next() ref      { return le.Uint32(b) }
func (b leaseBlock) end() int       { return int(le.Uint16(b[4:])) }
func (b leaseBlock) setNext(r ref)  { le.PutUint32(b, r) }
func (b leaseBlock) setEnd(end int) { le.PutUint16(b[4:], uint16(end)) }

func (b leaseBlock) lease(i int) (l lease, next int) {
	next = i + leaseHead + int(b[i+16])
	return lease{
		expiresNs: int64(le.Uint64(b[i:])), units: int64(le.Uint64(b[i+8:])), id: b[i+leaseHead : next],
	}, next
}

// leasePlace is where a lease stands.
type leasePlace struct {
	block, before ref // before: the block that links to this one, or 0
	at            int
}

// walk visits the leases until visit returns false.
func (l *leaseSet) walk(s *slab, visit func(lease, leasePlace) bool) {
	before := ref(0)
	for r := l.head; r != 0; {
		b := leaseBlock(s.at(r))
		for i := leaseBlockHead; i < b.end(); {
			x, next := b.lease(i)
			if !visit(x, leasePlace{r, before, i}) {
				return
			}
			i = next
		}
		before, r = r, b.next()
	}
}

// find returns the lease with this id.
func (l *leaseSet) find(s *slab, id []byte) (found lease, at leasePlace, ok bool) {
	l.walk(s, func(x lease, p leasePlace) bool {
		if string(x.id) == string(id) {
			found, at, ok = x, p, true
		}
		return !ok
	})
	return found, at, ok
}

// add puts in a lease whose id is not there.
func (l *leaseSet) add(s *slab, x lease) {
	n := leaseHead + len(x.id)
	var b leaseBlock
	if l.head != 0 {
		b = s.slot(l.head)
	}
	if b == nil || b.end()+n > len(b) {
		b = l.grow(s, leaseBlockHead+n)
	}
	i := b.end()
	le.PutUint64(b[i:], uint64(x.expiresNs))
	le.PutUint64(b[i+8:], uint64(x.units))
	b[i+16] = uint8(len(x.id))
	copy(b[i+leaseHead:], x.id)
	b.setEnd(i + n)
	if l.count == 0 {
		l.soonestNs = Never
	}
	l.count++
	l.units += x.units
	l.soonestNs = min(l.soonestNs, x.expiresNs)
}

// grow puts a new block in front.
func (l *leaseSet) grow(s *slab, atLeast int) leaseBlock {
	size := max(minLeaseBlock, atLeast)
	if l.head != 0 {
		size = max(atLeast, min(2*s.len(l.head), maxRecord))
	}
	r := s.alloc(size)
	b := leaseBlock(s.at(r))
	b.setNext(l.head)
	b.setEnd(leaseBlockHead)
	l.head = r
	return b
}

// renew sets a lease's expiry.
func (l *leaseSet) renew(s *slab, at leasePlace, expiresNs int64) {
	le.PutUint64(s.at(at.block)[at.at:], uint64(expiresNs))
	l.soonestNs = min(l.soonestNs, expiresNs)
}

// remove takes a lease out, and its block when that is empty.
func (l *leaseSet) remove(s *slab, at leasePlace) {
	b := leaseBlock(s.at(at.block))
	x, next := b.lease(at.at)
	l.count--
	l.units -= x.units
	copy(b[at.at:], b[next:b.end()])
	b.setEnd(b.end() - (next - at.at))
	if b.end() == leaseBlockHead {
		l.unlink(s, at.block, at.before)
	}
}

// sweep removes the leases that have expired.
func (l *leaseSet) sweep(s *slab, nowNs int64) {
	if l.count == 0 || nowNs < l.soonestNs {
		return
	}
	l.soonestNs = Never
	before := ref(0)
	for r := l.head; r != 0; {
		b := leaseBlock(s.at(r))
		l.sweepBlock(b, nowNs)
		next := b.next()
		if b.end() > leaseBlockHead {
			before = r
		} else {
			l.unlink(s, r, before)
		}
		r = next
	}
}

// sweepBlock moves the live leases of a block together.
func (l *leaseSet) sweepBlock(b leaseBlock, nowNs int64) {
	keep := leaseBlockHead
	for i := leaseBlockHead; i < b.end(); {
		x, next := b.lease(i)
		if x.expiresNs <= nowNs {
			l.count--
			l.units -= x.units
		} else {
			l.soonestNs = min(l.soonestNs, x.expiresNs)
			keep += copy(b[keep:], b[i:next])
		}
		i = next
	}
	b.setEnd(keep)
}

// unlink frees an empty block; before is the block that links to it, or 0.
func (l *leaseSet) unlink(s *slab, r, before ref) {
	next := leaseBlock(s.at(r)).next()
	if before == 0 {
		l.head = next
	} else {
		leaseBlock(s.at(before)).setNext(next)
	}
	s.free(r)
}

// lastExpiryNs is when the set is empty if nobody releases, the lease with id
// except left aside; Never if a lease has no end, 0 if there is none.
func (l *leaseSet) lastExpiryNs(s *slab, except []byte) (last int64) {
	l.walk(s, func(x lease, _ leasePlace) bool {
		if except == nil || string(x.id) != string(except) {
			last = max(last, x.expiresNs)
		}
		return true
	})
	return last
}

// freeAtNs is when enough leases will have expired to give back units, or Never.
func (l *leaseSet) freeAtNs(s *slab, units int64) int64 {
	first, freed := Never, int64(0)
	l.walk(s, func(x lease, _ leasePlace) bool {
		if x.expiresNs < first {
			first, freed = x.expiresNs, 0
		}
		if x.expiresNs == first {
			freed += x.units
		}
		return true
	})
	if freed >= units {
		return first
	}
	return l.freeAtSorted(s, units)
}

// freeAtSorted is freeAtNs for units that need leases of several expiries.
func (l *leaseSet) freeAtSorted(s *slab, units int64) int64 {
	ends := make([]lease, 0, l.count)
	l.walk(s, func(x lease, _ leasePlace) bool {
		ends = append(ends, x)
		return true
	})
	slices.SortFunc(ends, func(a, b lease) int { return cmp.Compare(a.expiresNs, b.expiresNs) })
	for _, x := range ends {
		if units -= x.units; units <= 0 {
			return x.expiresNs
		}
	}
	return Never
}

// clear frees all blocks.
func (l *leaseSet) clear(s *slab) {
	for r := l.head; r != 0; {
		next := leaseBlock(s.at(r)).next()
		s.free(r)
		r = next
	}
	*l = leaseSet{}
}

// bytes is the room the blocks take.
func (l *leaseSet) bytes(s *slab) (n int) {
	for r := l.head; r != 0; r = leaseBlock(s.at(r)).next() {
		n += s.len(r)
	}
	return n
}
