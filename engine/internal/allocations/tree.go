package allocations

import (
	"math/bits"

	"github.com/weir-project/weir/engine/internal/arith"
)

// before returns the sum of the gaps of the blocks before a position.
func (l *List) before(at int) (sum arith.Uint128) {
	for node := len(l.sums)/2 + at; node > 1; node /= 2 {
		if node%2 == 1 {
			sum = sum.Add(l.sums[node-1])
		}
	}
	return sum
}

// changed updates the tree after a change of a block, and marks the block as changed.
func (l *List) changed(b *block) {
	sum, soonestNs := b.summary()
	l.set(b.at, sum, soonestNs)
	if b.dirtyAt == 0 {
		l.dirty = append(l.dirty, b.first)
		b.dirtyAt = len(l.dirty)
	}
}

func (l *List) set(at int, sum arith.Uint128, soonestNs int64) {
	node := len(l.sums)/2 + at
	l.sums[node], l.ends[node] = sum, soonestNs
	for node /= 2; node > 0; node /= 2 {
		l.join(node)
	}
}

func (l *List) join(node int) {
	l.sums[node] = l.sums[2*node].Add(l.sums[2*node+1])
	l.ends[node] = min(l.ends[2*node], l.ends[2*node+1])
}

// newBlock appends an empty block.
func (l *List) newBlock(first uint64) *block {
	if len(l.blocks) == len(l.sums)/2 {
		l.renumber()
	}
	b := &block{first: first, at: len(l.blocks), prev: l.tail()}
	if b.prev != nil {
		b.prev.next = b
	}
	l.blocks, l.first = append(l.blocks, b), append(l.first, first)
	l.live++
	l.use(blockBytes)
	return b
}

// drop removes an empty block.
func (l *List) drop(b *block) {
	l.blocks[b.at] = nil
	l.set(b.at, arith.Uint128{}, arith.Never)
	if b.prev != nil {
		b.prev.next = b.next
	}
	if b.next != nil {
		b.next.prev = b.prev
	}
	l.forget(b)
	for n := len(l.blocks); n > 0 && l.blocks[n-1] == nil; n-- {
		l.blocks, l.first = l.blocks[:n-1], l.first[:n-1]
	}
	l.live--
	l.use(-blockBytes - int64(cap(b.ids)))
}

// forget removes a block from what the store has or will get.
func (l *List) forget(b *block) {
	if b.stored {
		l.gone = append(l.gone, b.first)
	}
	if n := len(l.dirty); b.dirtyAt > 0 {
		moved := l.dirty[n-1]
		l.dirty = l.dirty[:n-1]
		if b.dirtyAt < n {
			l.dirty[b.dirtyAt-1] = moved
			l.blockOf(moved).dirtyAt = b.dirtyAt
		}
	}
}

// renumber gives the blocks new positions, without the empty ones. At least half of the positions are free then.
func (l *List) renumber() {
	blocks := make([]*block, 0, l.live)
	for _, b := range l.blocks {
		if b != nil {
			blocks = append(blocks, b)
		}
	}
	l.index(blocks)
}

// index makes the blocks, in ascending order, those of the list.
func (l *List) index(blocks []*block) {
	size := 1 << bits.Len(uint(max(2*len(blocks)-1, 1)))
	l.use(int64(size-len(l.sums)/2) * positionBytes)
	l.sums, l.ends = make([]arith.Uint128, 2*size), make([]int64, 2*size)
	l.blocks, l.first = make([]*block, 0, size), make([]uint64, 0, size)
	l.live = len(blocks)
	for i := range l.ends {
		l.ends[i] = arith.Never
	}
	var prev *block
	for i, b := range blocks {
		b.at, b.prev, b.next = i, prev, nil
		if prev != nil {
			prev.next = b
		}
		prev = b
		l.blocks, l.first = append(l.blocks, b), append(l.first, b.first)
		l.sums[size+i], l.ends[size+i] = b.summary()
	}
	for node := size - 1; node > 0; node-- {
		l.join(node)
	}
}

// repack moves the allocations of sparse blocks to as few blocks as possible.
func (l *List) repack() {
	old := l.blocks
	l.blocks, l.first, l.live, l.count, l.dirty = nil, nil, 0, 0, nil
	l.newest = make(map[uint64]uint64, len(l.newest)) // a map never shrinks
	var blocks []*block
	for _, b := range old {
		if b == nil {
			continue
		}
		if b.stored {
			l.gone = append(l.gone, b.first)
		}
		for i := range b.parts[:b.n] {
			if n := len(blocks); n == 0 || blocks[n-1].n == perBlock {
				blocks = append(blocks, &block{first: b.parts[i].seq})
				l.use(blockBytes)
			}
			l.newest[l.hashOf(b.id(i))] = b.parts[i].seq
			l.use(-mapBytes)
			l.put(blocks[len(blocks)-1], b.parts[i], b.id(i))
		}
		l.use(-blockBytes - int64(cap(b.ids)))
	}
	l.index(blocks)
	for _, b := range blocks {
		l.dirty = append(l.dirty, b.first)
		b.dirtyAt = len(l.dirty)
	}
}
