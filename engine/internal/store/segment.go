package store

import (
	"math/bits"

	"github.com/weir-project/weir/engine/internal/arena"
)

// The layout of a segment. It has as many groups as fit a page of most kernels.
const (
	groupLen      = 8
	segmentGroups = 102
	segmentSlots  = segmentGroups * groupLen
	segmentLoad   = segmentSlots * 7 / 8
	segmentBytes  = 4 << 10
)

// Segment holds the entries whose hashes share their Depth leading bits.
type Segment struct {
	groups [segmentGroups]slotGroup
	_      [segmentBytes - segmentSlots*5 - 6]byte
	live   uint16
	dead   uint16 // slots marked gone
	Depth  uint8
}

// slotGroup is a group of slots that are probed at once. The references are beside the control bytes, so that
// both are loaded from memory together.
type slotGroup struct {
	ctrl [groupLen]uint8 // tag of the hash, or one of the marks below
	refs [groupLen]arena.Ref
}

// Marks of a control byte. A tag has its highest bit clear.
const (
	slotEmpty = 0x80
	slotGone  = 0xfe
)

const (
	lowBits  = 0x0101010101010101
	highBits = 0x8080808080808080
)

// empty marks all slots empty.
func (g *Segment) empty() {
	for i := range g.groups {
		le.PutUint64(g.groups[i].ctrl[:], lowBits*slotEmpty)
	}
	g.live, g.dead = 0, 0
}

// The leading bits of a hash choose the segment, bits 16..22 are the tag, bits 23..34 choose the first group, and bits
// 35..37 the step to the others. The lowest bits are zero: the engine shifts a hash left by the number of bits that
// chose the shard.
const (
	TagShift   = 16
	GroupShift = 23
	groupBits  = 12
	stepShift  = GroupShift + groupBits
)

func tagOf(h uint64) uint8 { return uint8(h >> TagShift & 0x7f) }

// startOf returns the first group that may have the entry of a hash. The others follow in a step of the hash (double
// hashing), so that full groups do not form long chains.
func startOf(h uint64) int {
	return int(h >> GroupShift % (1 << groupBits) * segmentGroups >> groupBits)
}

func nextOf(group int, h uint64) int {
	if group += int(steps[h>>stepShift%uint64(len(steps))]); group < segmentGroups {
		return group
	}
	return group - segmentGroups
}

// steps have no divisor in common with segmentGroups, so each reaches all groups.
var steps = [...]uint8{1, 5, 7, 11, 13, 19, 23, 25}

// Prefetch loads what add reads of the segment into the cache. The caller must use the result.
func (g *Segment) Prefetch() uint64 { return uint64(g.live) }

// slot returns the entry in a slot of the segment, 0 for none.
func (g *Segment) slot(n int) arena.Ref {
	of := &g.groups[n/groupLen]
	if of.ctrl[n%groupLen] >= slotEmpty {
		return 0
	}
	return of.refs[n%groupLen]
}

// word returns the control bytes of a group.
func (x *slotGroup) word() uint64 { return le.Uint64(x.ctrl[:]) }

// firstIn returns the slot of the lowest bit in a mask.
func firstIn(mask uint64) int { return bits.TrailingZeros64(mask) / 8 }

// matchTag returns a mask with the high bit of each byte that may equal tag. A byte above a true match may be
// marked falsely, so callers compare the key.
func matchTag(word uint64, tag uint8) uint64 {
	v := word ^ (lowBits * uint64(tag))
	return (v - lowBits) &^ v & highBits
}

// matchEmpty marks the bytes that are slotEmpty.
func matchEmpty(word uint64) uint64 { return word &^ (word << 6) & highBits }

// matchFree marks the bytes that are slotEmpty or slotGone.
func matchFree(word uint64) uint64 { return word & highBits }

func (g *Segment) put(h uint64, r arena.Ref) {
	for i := startOf(h); ; i = nextOf(i, h) {
		x := &g.groups[i]
		if m := matchFree(x.word()); m != 0 {
			i := firstIn(m)
			if x.ctrl[i] == slotGone {
				g.dead--
			}
			x.ctrl[i], x.refs[i] = tagOf(h), r
			g.live++
			return
		}
	}
}

// clear empties a slot of a group. If the group has another empty slot, the slot is marked empty, because no probe
// ever continued past this group. Otherwise the slot is marked gone.
func (g *Segment) clear(x *slotGroup, slot int) {
	g.live--
	if matchEmpty(x.word()) != 0 {
		x.ctrl[slot] = slotEmpty
		return
	}
	x.ctrl[slot] = slotGone
	g.dead++
}

// Each calls visit for each entry of the segment.
func (g *Segment) Each(visit func(arena.Ref)) {
	for i := range g.groups {
		x := &g.groups[i]
		for slot, c := range x.ctrl {
			if c < slotEmpty {
				visit(x.refs[slot])
			}
		}
	}
}

// eachRef calls visit with the address of each reference, so that visit can replace it.
func (g *Segment) eachRef(visit func(*arena.Ref)) {
	for i := range g.groups {
		x := &g.groups[i]
		for slot, c := range x.ctrl {
			if c < slotEmpty {
				visit(&x.refs[slot])
			}
		}
	}
}

// Size returns the number of entries of the segment.
func (g *Segment) Size() int { return int(g.live) }

// sweep rebuilds a segment without slots marked gone.
func (g *Segment) sweep(hashesOf hashFunc) {
	old := *g
	g.empty()
	old.rehash(hashesOf, g.put)
}

// rehashBatch is how many entries are hashed at once. A processor supports about as many outstanding loads.
const rehashBatch = 16

// rehash calls put with each entry of the segment and its hash.
func (g *Segment) rehash(hashesOf hashFunc, put func(h uint64, r arena.Ref)) {
	refs, out := make([]arena.Ref, 0, rehashBatch), make([]uint64, rehashBatch)
	flush := func() {
		hashesOf(refs, out)
		for i, r := range refs {
			put(out[i], r)
		}
		refs = refs[:0]
	}
	g.Each(func(r arena.Ref) {
		if refs = append(refs, r); len(refs) == rehashBatch {
			flush()
		}
	})
	flush()
}

// following returns the first hash after the segment of a hash, or 0 after the last segment.
func (g *Segment) following(h uint64) uint64 {
	if g.Depth == 0 {
		return 0
	}
	span := uint64(1) << (64 - g.Depth)
	return h&^(span-1) + span
}
