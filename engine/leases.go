package engine

// leaseSet holds the leases of one key in a chain of blocks, in no order. As stored
// in an entry's state it is head(4) count(4) units(8) soonest(8).
type leaseSet struct {
	head      ref
	count     uint32
	units     int64 // held in all, expired leases included until swept
	soonestNs int64 // no lease expires before
	hiddenNs  int64 // all leaves out what expires until then; not stored
}

const (
	leasesLen     = 24
	minLeaseBlock = 64
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

// leasePlace is where a lease stands; the zero place is none.
type leasePlace struct {
	block, before ref // before: the block that links to this one, or 0
	at            int
}

// all iterates over the leases and where they stand.
func (l *leaseSet) all(s *slab) func(yield func(leasePlace, lease) bool) {
	return func(yield func(leasePlace, lease) bool) {
		before := ref(0)
		for r := l.head; r != 0; {
			b := leaseBlock(s.at(r))
			for i := leaseBlockHead; i < b.end(); {
				x, next := b.lease(i)
				if x.expiresNs > l.hiddenNs && !yield(leasePlace{r, before, i}, x) {
					return
				}
				i = next
			}
			before, r = r, b.next()
		}
	}
}

// find returns the lease with this id.
func (l *leaseSet) find(s *slab, id []byte) (found lease, at leasePlace, ok bool) {
	for at, x := range l.all(s) {
		if string(x.id) == string(id) {
			return x, at, true
		}
	}
	return lease{}, leasePlace{}, false
}

// add puts in a lease whose id is not there.
func (l *leaseSet) add(s *slab, x lease) {
	if size := l.growth(s, x.id); size > 0 {
		l.grow(s, size)
	}
	leaseBlock(s.at(l.head)).add(x)
	if l.count == 0 {
		l.soonestNs = Never
	}
	l.count++
	l.units += x.units
	l.soonestNs = min(l.soonestNs, x.expiresNs)
}

// growth is the size of the block that a lease with this id needs; 0 when the first
// block has room for it.
func (l *leaseSet) growth(s *slab, id []byte) int {
	n := leaseHead + len(id)
	if l.head == 0 {
		return max(minLeaseBlock, leaseBlockHead+n)
	}
	size := s.len(l.head)
	if leaseBlock(s.at(l.head)).end()+n <= size {
		return 0
	}
	return max(leaseBlockHead+n, min(2*size, maxRecord))
}

// grow puts a new block in front.
func (l *leaseSet) grow(s *slab, size int) {
	r := s.alloc(size)
	b := leaseBlock(s.at(r))
	b.setNext(l.head)
	b.setEnd(leaseBlockHead)
	l.head = r
}

// renew sets a lease's expiry.
func (l *leaseSet) renew(s *slab, at leasePlace, expiresNs int64) {
	le.PutUint64(s.at(at.block)[at.at:], uint64(expiresNs))
	l.soonestNs = min(l.soonestNs, expiresNs)
}

// remove takes a lease out, and its block when that is empty.
func (l *leaseSet) remove(s *slab, at leasePlace) {
	b := leaseBlock(s.at(at.block))
	l.count--
	l.units -= b.remove(at.at)
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

// hide is sweep for a reader: the leases that have expired stay, but are not counted
// or met any more.
func (l *leaseSet) hide(s *slab, nowNs int64) {
	if l.count == 0 || nowNs < l.soonestNs {
		return
	}
	l.hiddenNs, l.count, l.units = nowNs, 0, 0
	for _, x := range l.all(s) {
		l.count++
		l.units += x.units
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

// lastExpiryNs is when the set is empty if nobody releases, the lease at one place
// left aside; Never if a lease has no end, 0 if there is none.
func (l *leaseSet) lastExpiryNs(s *slab, except leasePlace) (last int64) {
	for at, x := range l.all(s) {
		if at != except {
			last = max(last, x.expiresNs)
		}
	}
	return last
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
