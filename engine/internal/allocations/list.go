package allocations

import (
	"iter"
	"math"
	"slices"
	"sort"

	"github.com/weir-project/weir/engine/internal/arena"
	"github.com/weir-project/weir/engine/internal/arith"
)

// Allocation is units of one hold. A hold may have several.
type Allocation struct {
	EndsNs int64
	Units  int64         // below zero: the units stay taken when the hold ends by itself
	Mark   arith.Uint128 // the position of the units in the limiter
	Seq    uint64        // the number of the allocation in the list: later allocations have greater numbers
	ID     []byte        // of the hold; valid until the list changes
}

// List is the allocations of one limiter.
//
//	blocks   the blocks by position, nil for a block that became empty; first has their numbers, in ascending order
//	sums     a binary tree over the positions, with the gaps of all blocks below a node
//	ends     the same tree with the first end
//	newest   the newest allocation of each hold, by the hash of its id; older leads on to the others
//
// A new block gets the next position. When the tree is full, renumber leaves the empty positions out; when the blocks
// are sparse, repack fills them. Both take time in proportion to the list, once after as many changes.
type List struct {
	meter  *arena.Meter
	hashOf func([]byte) uint64
	bytes  int64

	base   arith.Uint128 // the mark before the first allocation, modulo 2^128
	last   uint64        // the number of the newest allocation ever added
	blocks []*block
	first  []uint64
	sums   []arith.Uint128
	ends   []int64
	newest map[uint64]uint64
	live   int // blocks that are not empty
	count  int
	holds  int
	dirty  []uint64 // the numbers of changed blocks
	gone   []uint64 // the numbers of stored blocks that are gone

	// loaded has the blocks by their numbers while blocks are loaded; soonestNs is then the first end.
	loaded    map[uint64]*block
	soonestNs int64
}

// New returns an empty list. meter counts its memory.
func New(meter *arena.Meter, hashOf func([]byte) uint64) *List {
	l := &List{meter: meter, hashOf: hashOf, newest: map[uint64]uint64{}}
	l.renumber()
	return l
}

// Count returns the number of allocations, and Holds that of the holds that they belong to.
func (l *List) Count() int { return l.ready().count }

// Holds returns the number of holds that the allocations belong to.
func (l *List) Holds() int { return l.ready().holds }

// Bytes returns the memory of the list.
func (l *List) Bytes() int64 { return l.bytes }

// Full reports whether the next allocation needs a new block.
func (l *List) Full() bool {
	b := l.ready().tail()
	return b == nil || b.n == perBlock
}

// SoonestNs returns when the first allocation ends, or Never.
func (l *List) SoonestNs() int64 {
	if l.loaded != nil {
		return l.soonestNs
	}
	return l.ends[1]
}

// Free gives the memory back. Gone then returns all blocks that were stored. The list must not be used any more.
func (l *List) Free() {
	for _, b := range l.ready().blocks {
		if b != nil && b.stored {
			l.gone = append(l.gone, b.first)
		}
	}
	l.use(-l.bytes)
}

// Add adds an allocation, and sets its number.
func (l *List) Add(x Allocation) {
	l.ready().last++
	b := l.tail()
	if b == nil || b.n == perBlock {
		b = l.newBlock(l.last)
	}
	h := l.hashOf(x.ID)
	if _, of := l.newestOf(h, x.ID); of == nil {
		l.holds++
	}
	p := part{endsNs: x.EndsNs, units: x.Units, gap: x.Mark.Sub(l.base.Add(l.sums[1])), seq: l.last, older: l.newest[h]}
	l.put(b, p, x.ID)
	l.newest[h] = l.last
	l.changed(b)
}

// put appends an allocation to a block.
func (l *List) put(b *block, p part, id []byte) {
	before := cap(b.ids)
	b.add(p, id)
	l.count++
	l.use(mapBytes + int64(cap(b.ids)-before))
}

// Newest returns the newest allocation of a hold, and how many the hold has.
func (l *List) Newest(id []byte) (x Allocation, n int) {
	seq, b := l.ready().newestOf(l.hashOf(id), id)
	for ; b != nil; n++ {
		i := b.index(seq)
		if n == 0 {
			x = l.at(b, i)
		}
		seq, b = l.olderOf(b.parts[i].older, id)
	}
	return x, n
}

// Of iterates over the allocations of a hold, the newest first. The list must not change meanwhile.
func (l *List) Of(id []byte) iter.Seq[Allocation] {
	return func(yield func(Allocation) bool) {
		seq, b := l.ready().newestOf(l.hashOf(id), id)
		for b != nil {
			i := b.index(seq)
			if !yield(l.at(b, i)) {
				return
			}
			seq, b = l.olderOf(b.parts[i].older, id)
		}
	}
}

func (l *List) newestOf(h uint64, id []byte) (seq uint64, b *block) {
	return l.olderOf(l.newest[h], id)
}

// olderOf returns the first allocation of a hold in a chain of equal hashes.
func (l *List) olderOf(seq uint64, id []byte) (uint64, *block) {
	for seq != 0 {
		b := l.blockOf(seq)
		i := b.index(seq)
		if string(b.id(i)) == string(id) {
			return seq, b
		}
		seq = b.parts[i].older
	}
	return 0, nil
}

// at returns an allocation.
func (l *List) at(b *block, i int) Allocation {
	mark := l.base.Add(l.before(b.at))
	for k := range b.parts[:i+1] {
		mark = mark.Add(b.parts[k].gap)
	}
	return b.allocation(i, mark)
}

// allocation returns an allocation with a mark. A mark that a refund moved below zero is zero.
func (b *block) allocation(i int, mark arith.Uint128) Allocation {
	x := &b.parts[i]
	if mark.Hi > math.MaxInt64 {
		mark = arith.Uint128{}
	}
	return Allocation{x.endsNs, x.units, mark, x.seq, b.id(i)}
}

// Soonest returns an allocation that ends first. The list must not be empty.
func (l *List) Soonest() Allocation {
	l.ready()
	node := 1
	for node < len(l.ends)/2 {
		if node *= 2; l.ends[node] != l.ends[node/2] {
			node++
		}
	}
	b := l.blocks[node-len(l.ends)/2]
	i := slices.IndexFunc(b.parts[:b.n], func(x part) bool { return x.endsNs == l.ends[1] })
	return l.at(b, i)
}

// From iterates over the allocations from a number on, in the order in which their units were taken. The list must not
// change meanwhile.
func (l *List) From(seq uint64) iter.Seq[Allocation] {
	return func(yield func(Allocation) bool) {
		at := max(l.ready().position(seq), 0)
		mark := l.base.Add(l.before(at))
		for _, b := range l.blocks[at:] {
			for i := 0; b != nil && i < b.n; i++ {
				mark = mark.Add(b.parts[i].gap)
				if b.parts[i].seq >= seq && !yield(b.allocation(i, mark)) {
					return
				}
			}
		}
	}
}

// Ended iterates over the allocations that end at or before a time, in the order in which their units were taken. The
// list must not change meanwhile.
func (l *List) Ended(atNs int64) iter.Seq[Allocation] {
	return func(yield func(Allocation) bool) { l.ready().endedBelow(1, atNs, yield) }
}

func (l *List) endedBelow(node int, atNs int64, yield func(Allocation) bool) bool {
	if l.ends[node] > atNs {
		return true
	}
	if node < len(l.ends)/2 {
		return l.endedBelow(2*node, atNs, yield) && l.endedBelow(2*node+1, atNs, yield)
	}
	b := l.blocks[node-len(l.ends)/2]
	for i := range b.parts[:b.n] {
		if b.parts[i].endsNs <= atNs && !yield(l.at(b, i)) {
			return false
		}
	}
	return true
}

// Due reports whether more than n allocations end at or before a time.
func (l *List) Due(atNs int64, n int) bool {
	for range l.Ended(atNs) {
		if n--; n < 0 {
			return true
		}
	}
	return false
}

// Remove removes an allocation, and moves the marks of all later allocations earlier by given.
func (l *List) Remove(seq uint64, given arith.Uint128) {
	b := l.ready().blockOf(seq)
	i := b.index(seq)
	h, id := l.hashOf(b.id(i)), b.id(i)
	if newest, _ := l.newestOf(h, id); newest == seq {
		if _, of := l.olderOf(b.parts[i].older, id); of == nil {
			l.holds--
		}
	}
	l.unchain(h, b, i)
	l.moveNext(b, i, b.parts[i].gap.Sub(given))
	b.remove(i)
	l.count--
	l.use(-mapBytes)
	if b.n == 0 {
		l.drop(b)
	} else {
		l.changed(b)
	}
	if l.live*perBlock > 4*l.count+4*perBlock {
		l.repack()
	}
}

// Grow adds units to an allocation, and moves its mark, but not those of later allocations.
func (l *List) Grow(seq uint64, units int64, mark arith.Uint128) {
	b := l.ready().blockOf(seq)
	i := b.index(seq)
	moved := mark.Sub(l.at(b, i).Mark)
	b.parts[i].units += units
	if moved != (arith.Uint128{}) {
		b.parts[i].gap = b.parts[i].gap.Add(moved)
		l.moveNext(b, i, arith.Uint128{}.Sub(moved))
	}
	l.changed(b)
}

// SetUnits sets the units of an allocation.
func (l *List) SetUnits(seq uint64, units int64) {
	b := l.ready().blockOf(seq)
	b.parts[b.index(seq)].units = units
	l.changed(b)
}

// Renew sets the end of the allocations of a hold.
func (l *List) Renew(id []byte, endsNs int64) {
	seq, b := l.ready().newestOf(l.hashOf(id), id)
	for b != nil {
		x := &b.parts[b.index(seq)]
		x.endsNs = endsNs
		l.changed(b)
		seq, b = l.olderOf(x.older, id)
	}
}

// MoveAll moves the marks of all allocations earlier.
func (l *List) MoveAll(by arith.Uint128) { l.ready().base = l.base.Sub(by) }

// unchain removes an allocation from the chain of its hash.
func (l *List) unchain(h uint64, of *block, at int) {
	seq, older := of.parts[at].seq, of.parts[at].older
	newer := l.newest[h]
	switch {
	case newer != seq:
		for {
			b := l.blockOf(newer)
			x := &b.parts[b.index(newer)]
			if x.older == seq {
				x.older = older
				return
			}
			newer = x.older
		}
	case older != 0:
		l.newest[h] = older
	default:
		delete(l.newest, h)
	}
}

// moveNext adds to the gap of the allocation after one.
func (l *List) moveNext(b *block, i int, by arith.Uint128) {
	if i++; i == b.n {
		if b, i = b.next, 0; b == nil {
			return
		}
	}
	b.parts[i].gap = b.parts[i].gap.Add(by)
	l.changed(b)
}

// blockOf returns the block with an allocation.
func (l *List) blockOf(seq uint64) *block { return l.blocks[l.position(seq)] }

// position returns the position of the last block that begins at or before a number, or -1.
func (l *List) position(seq uint64) int {
	return sort.Search(len(l.first), func(i int) bool { return l.first[i] > seq }) - 1
}

// tail returns the last block, or nil.
func (l *List) tail() *block {
	if n := len(l.blocks); n > 0 {
		return l.blocks[n-1]
	}
	return nil
}

func (l *List) use(bytes int64) {
	l.bytes += bytes
	l.meter.Add(bytes)
}
