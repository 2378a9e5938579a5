package store

import (
	"github.com/weir-project/weir/engine/internal/arena"
	"github.com/weir-project/weir/internal/offheap"
)

// Index finds the slot of an entry by the hash of its key. It is an extendible hash table (Fagin et al., 1979)
// of fixed-size segments. Each segment is an open-addressed table, probed in groups of eight control bytes at
// once (the idea of Abseil's Swiss tables). Growing splits one segment, so no insertion ever waits for the
// whole table to be moved.
type Index struct {
	dir    offheap.List[Segment] // by the leading bits of the hash, 2^depth of them
	depth  uint8
	source *offheap.Blocks[Segment]
	used   *arena.Meter // bytes of segments
}

func newIndex(source *offheap.Blocks[Segment], used *arena.Meter) Index {
	x := Index{source: source, used: used}
	x.dir.Append(x.newSegment(0))
	return x
}

// Reserve prepares an empty index for a number of entries, so that inserting them splits no segment.
func (x *Index) Reserve(entries int64) {
	depth := uint8(0)
	for entries>>depth > segmentLoad*9/10 {
		depth++
	}
	for g := range x.Segments() {
		x.drop(g)
	}
	x.dir, x.depth = offheap.NewList[Segment](1<<depth), depth
	for i := range x.dir.Len() {
		x.dir.Set(i, x.newSegment(depth))
	}
}

func (x *Index) newSegment(depth uint8) *Segment {
	x.used.Add(segmentBytes)
	g := x.source.Take()
	g.Depth = depth
	g.empty()
	return g
}

// drop returns the memory of a segment that is no longer in the directory.
func (x *Index) drop(g *Segment) {
	x.used.Add(-segmentBytes)
	x.source.Return(g)
}

// discard adds all segments to a batch. Nothing may be looked up any more.
func (x *Index) discard(to []*Segment) []*Segment {
	for g := range x.Segments() {
		x.used.Add(-segmentBytes)
		to = append(to, g)
	}
	x.dir = offheap.List[Segment]{}
	return to
}

// SegmentOf returns the segment for a hash. The leading bits of the hash choose it.
func (x *Index) SegmentOf(h uint64) *Segment { return x.dir.At(int(h >> (64 - x.depth))) }

// denserOf returns the denser of the segments of two hashes: the segment with more entries for its share of all
// hashes.
func (x *Index) denserOf(h, other uint64) *Segment {
	a, b := x.SegmentOf(h), x.SegmentOf(other)
	if uint64(b.live)<<b.Depth > uint64(a.live)<<a.Depth {
		return b
	}
	return a
}

// Segments iterates over the segments, each once. A segment may be dropped while it is visited.
func (x *Index) Segments() func(yield func(*Segment) bool) {
	return func(yield func(*Segment) bool) {
		for i := 0; i < x.dir.Len(); {
			g := x.dir.At(i)
			i += 1 << (x.depth - g.Depth)
			if !yield(g) {
				return
			}
		}
	}
}

// find returns the entry with this key in a name space, and its position: a slot of a group. Ref is 0 if there
// is none.
func (x *Index) find(h uint64, s *arena.Slab, ns Space, key []byte) (of *slotGroup, slot int, r arena.Ref) {
	g := x.SegmentOf(h)
	for i := startOf(h); ; i = nextOf(i, h) {
		of = &g.groups[i]
		word := of.word()
		for m := matchTag(word, tagOf(h)); m != 0; m &= m - 1 {
			slot = firstIn(m)
			if r = of.refs[slot]; Entry(s.At(r)).is(ns, key) {
				return of, slot, r
			}
		}
		if matchEmpty(word) != 0 {
			return nil, 0, 0
		}
	}
}

// Group is the group of slots in which find begins to search for a hash. It is valid until the index changes.
type Group struct {
	of  *slotGroup
	tag uint8
}

// GroupOf returns the group of a hash. It reads nothing of the group.
func (x *Index) GroupOf(h uint64) Group {
	return Group{&x.SegmentOf(h).groups[startOf(h)], tagOf(h)}
}

// Read loads the group into the cache. The caller must use the result, or the compiler drops the load.
func (g Group) Read() uint64 { return g.of.word() }

// First returns the first candidate of find, or 0 if the group has none.
func (g Group) First() arena.Ref {
	m := matchTag(g.of.word(), g.tag)
	if m == 0 {
		return 0
	}
	return g.of.refs[firstIn(m)]
}

// hashFunc puts the hashes of entries into out. The index passes several entries, so that their cache misses overlap.
type hashFunc func(refs []arena.Ref, out []uint64)

// add inserts an entry that is not in the index. hashesOf is for splitting a segment.
func (x *Index) add(h uint64, r arena.Ref, hashesOf hashFunc) {
	g := x.SegmentOf(h)
	for g.live+g.dead >= segmentLoad {
		if g.dead >= segmentSlots/8 {
			g.sweep(hashesOf)
		} else {
			x.split(h, g, hashesOf)
		}
		g = x.SegmentOf(h)
	}
	g.put(h, r)
}

// remove removes the entry for h from the slot that find returned. It joins the segment with its neighbour if
// both have become nearly empty.
func (x *Index) remove(h uint64, of *slotGroup, slot int, hashesOf hashFunc) {
	g := x.SegmentOf(h)
	g.clear(of, slot)
	if g.Depth == 0 || g.live > segmentFew {
		return
	}
	other := x.SegmentOf(h ^ 1<<(64-g.Depth))
	if other.Depth == g.Depth && other.live <= segmentFew {
		x.join(h, g, other, hashesOf)
	}
}

// segmentFew is the largest size of two segments that are joined. It is far below the size of a split, so that
// a key that comes and goes does not cause both.
const segmentFew = segmentLoad / 8

// split moves half of the entries of the segment of h to a new segment.
func (x *Index) split(h uint64, lower *Segment, hashesOf hashFunc) {
	if lower.Depth == x.depth {
		x.double()
	}
	old := *lower
	depth := old.Depth + 1
	halves := [2]*Segment{lower, x.newSegment(depth)}
	lower.Depth = depth
	lower.empty()
	old.rehash(hashesOf, func(eh uint64, r arena.Ref) { halves[eh>>(64-depth)&1].put(eh, r) })
	x.spread(h, old.Depth, halves[:])
}

// join moves the entries of a segment to its neighbour.
func (x *Index) join(h uint64, to, from *Segment, hashesOf hashFunc) {
	to.Depth--
	to.sweep(hashesOf)
	from.rehash(hashesOf, to.put)
	x.spread(h, to.Depth, []*Segment{to})
	x.drop(from)
}

// spread points the directory entries of all hashes that share h's leading depth bits to the given segments, in
// equal parts.
func (x *Index) spread(h uint64, depth uint8, segments []*Segment) {
	span := uint64(1) << (x.depth - depth)
	first := h >> (64 - x.depth) &^ (span - 1)
	part := span / uint64(len(segments))
	for i := range span {
		x.dir.Set(int(first+i), segments[i/part])
	}
}

// double doubles the directory.
func (x *Index) double() {
	dir := offheap.NewList[Segment](2 * x.dir.Len())
	for i := range dir.Len() {
		dir.Set(i, x.dir.At(i/2))
	}
	x.dir = dir
	x.depth++
}

// IndexBytes is the number of bytes of the index per entry: those of a segment that is three quarters full, rounded.
const IndexBytes = (segmentBytes + usualLoad/2) / usualLoad

const usualLoad = segmentSlots * 3 / 4
