package allocations

import (
	"slices"

	"github.com/weir-project/weir/engine/internal/arith"
)

// perBlock is how many allocations a block has at most. A larger block makes the tree smaller, and each stored change
// longer: a full block is stored in about 800 bytes.
const perBlock = 16

// block is a run of the list. Its pointers come first, so the garbage collector does not scan the allocations.
type block struct {
	prev, next *block
	ids        []byte // the ids of the allocations, one after another
	first      uint64 // the number of the allocation with which the block was made: its name in the store
	at         int    // the position in List.blocks
	dirtyAt    int    // the position in List.dirty, from 1 on; 0: not dirty
	stored     bool   // was handed out by Drain or came from Load
	n          int
	parts      [perBlock]part
}

// part is an allocation without its id.
type part struct {
	endsNs int64
	units  int64         // below zero: the units stay taken in the end
	gap    arith.Uint128 // from the mark of the allocation before this one, modulo 2^128
	seq    uint64
	older  uint64 // the number of the next older allocation whose id has the same hash, or 0
	idLen  uint8
}

// The memory that a list counts: of a block without its ids, as the allocator rounds it, of a position in the tree, and
// of an allocation in the map, whose tables are two thirds full.
const (
	blockBytes    = 1024
	positionBytes = 2*(16+8) + 8 + 8
	mapBytes      = 28
)

// index returns the index of the allocation with a number, or -1.
func (b *block) index(seq uint64) int {
	for i := range b.parts[:b.n] {
		if b.parts[i].seq == seq {
			return i
		}
	}
	return -1
}

// idAt returns the offset of an id in ids.
func (b *block) idAt(i int) (at int) {
	for k := range b.parts[:i] {
		at += int(b.parts[k].idLen)
	}
	return at
}

func (b *block) id(i int) []byte {
	at := b.idAt(i)
	return b.ids[at : at+int(b.parts[i].idLen)]
}

// add appends an allocation.
func (b *block) add(x part, id []byte) {
	x.idLen = uint8(len(id))
	b.ids = append(b.ids, id...)
	b.parts[b.n] = x
	b.n++
}

func (b *block) remove(i int) {
	at := b.idAt(i)
	b.ids = slices.Delete(b.ids, at, at+int(b.parts[i].idLen))
	copy(b.parts[i:], b.parts[i+1:b.n])
	b.n--
}

// summary returns the sum of the gaps and the first end of a block.
func (b *block) summary() (sum arith.Uint128, soonestNs int64) {
	soonestNs = arith.Never
	for i := range b.parts[:b.n] {
		x := &b.parts[i]
		sum, soonestNs = sum.Add(x.gap), min(soonestNs, x.endsNs)
	}
	return sum, soonestNs
}
