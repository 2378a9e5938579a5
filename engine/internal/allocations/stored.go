package allocations

import (
	"cmp"
	"encoding/binary"
	"errors"
	"maps"
	"slices"

	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/codec"
	"github.com/weir-project/weir/engine/internal/rule"
)

// The stored form of a block. Its name is the number of the allocation with which it was made.
//
//	block      = count(1) allocation...
//	allocation = ends units gap(16) number-name id(len, bytes)

var errStored = errors.New("not a stored block")

var le = binary.LittleEndian

// Head returns what a store keeps beside the blocks: the mark before the first allocation, and the newest number.
func (l *List) Head() (base arith.Uint128, last uint64) { return l.ready().base, l.last }

// SetHead sets what Head returned.
func (l *List) SetHead(base arith.Uint128, last uint64) { l.base, l.last = base, last }

// Dirty reports whether a block changed since it was handed out.
func (l *List) Dirty() bool { return len(l.ready().dirty) > 0 }

// Drain calls emit with up to n changed blocks, and marks them as stored. value appends the stored form.
func (l *List) Drain(n int, emit func(first uint64, value func(b []byte) []byte)) {
	for l.ready(); n > 0 && len(l.dirty) > 0; n-- {
		first := l.dirty[len(l.dirty)-1]
		l.dirty = l.dirty[:len(l.dirty)-1]
		b := l.blockOf(first)
		b.dirtyAt, b.stored = 0, true
		emit(first, b.appendStored)
	}
	if len(l.dirty) == 0 {
		l.dirty = nil
	}
}

// Gone returns the numbers of stored blocks that are gone, and clears them.
func (l *List) Gone() (list []uint64) {
	list, l.gone = l.gone, nil
	return list
}

// Unstore makes the list one of which nothing is stored.
func (l *List) Unstore() {
	for _, b := range l.ready().blocks {
		if b != nil {
			b.stored = false
		}
	}
	l.gone = nil
}

// MarkAll marks all blocks as changed.
func (l *List) MarkAll() {
	for _, b := range l.ready().blocks {
		if b != nil && b.dirtyAt == 0 {
			l.dirty = append(l.dirty, b.first)
			b.dirtyAt = len(l.dirty)
		}
	}
}

func (b *block) appendStored(to []byte) []byte {
	to = append(to, byte(b.n))
	for i := range b.parts[:b.n] {
		x := &b.parts[i]
		to = binary.AppendVarint(binary.AppendVarint(to, x.endsNs), x.units)
		to = le.AppendUint64(le.AppendUint64(to, x.gap.Hi), x.gap.Lo)
		to = binary.AppendVarint(to, int64(x.seq-b.first))
		to = append(binary.AppendVarint(to, int64(x.idLen)), b.id(i)...)
	}
	return to
}

// Load adds a stored block, or replaces the block with its number. Blocks may be loaded in any order.
func (l *List) Load(first uint64, value []byte) error {
	d := codec.Decoder{B: value}
	b := &block{first: first, stored: true}
	count := int(d.Byte())
	d.Bad = d.Bad || count == 0 || count > perBlock || first == 0 || first > rule.MaxUnits
	for seq := first; b.n < count && !d.Bad; seq++ {
		x := part{endsNs: d.Within(1, arith.Never), units: d.Within(-rule.MaxUnits, rule.MaxUnits)}
		if gap := d.Bytes(16); !d.Bad {
			x.gap = arith.Uint128{Hi: le.Uint64(gap), Lo: le.Uint64(gap[8:])}
		}
		x.seq = first + uint64(d.Within(int64(seq-first), rule.MaxUnits))
		id := d.Bytes(d.Within(1, rule.MaxIDLen))
		if !d.Bad {
			b.add(x, id)
			seq = x.seq
		}
	}
	if d.Bad || len(d.B) > 0 {
		return errStored
	}
	l.loading()
	l.Unload(first)
	l.loaded[first] = b
	_, soonestNs := b.summary()
	l.soonestNs = min(l.soonestNs, soonestNs)
	l.use(blockBytes + int64(cap(b.ids)) + int64(b.n)*mapBytes)
	return nil
}

// Unload removes the block with a number, if there is one.
func (l *List) Unload(first uint64) {
	l.loading()
	if b := l.loaded[first]; b != nil {
		delete(l.loaded, first)
		l.use(-blockBytes - int64(cap(b.ids)) - int64(b.n)*mapBytes)
	}
}

// loading prepares the list for Load and Unload.
func (l *List) loading() {
	if l.loaded != nil {
		return
	}
	l.loaded, l.soonestNs = map[uint64]*block{}, arith.Never
	for _, b := range l.blocks {
		if b != nil {
			l.loaded[b.first] = b
		}
	}
	l.soonestNs = l.ends[1]
}

// ready makes the list out of blocks that were loaded. It must be called before the list is read.
func (l *List) ready() *List {
	if l.loaded == nil {
		return l
	}
	blocks := slices.SortedFunc(maps.Values(l.loaded), func(a, b *block) int { return cmp.Compare(a.first, b.first) })
	l.loaded, l.count, l.holds = nil, 0, 0
	l.newest = map[uint64]uint64{}
	blocks, last := l.disjoint(blocks)
	l.last = max(l.last, last)
	l.index(blocks)
	for _, b := range blocks {
		l.count += b.n
		for i := range b.parts[:b.n] {
			h := l.hashOf(b.id(i))
			if _, of := l.newestOf(h, b.id(i)); of == nil {
				l.holds++
			}
			b.parts[i].older = l.newest[h]
			l.newest[h] = b.parts[i].seq
		}
	}
	return l
}

// disjoint removes blocks whose numbers are not above those of the blocks before, which only a damaged store has. It
// returns the greatest number of the others.
func (l *List) disjoint(blocks []*block) (kept []*block, last uint64) {
	for _, b := range blocks {
		if b.first <= last {
			l.use(-blockBytes - int64(cap(b.ids)) - int64(b.n)*mapBytes)
			continue
		}
		kept, last = append(kept, b), b.parts[b.n-1].seq
	}
	return kept, last
}
