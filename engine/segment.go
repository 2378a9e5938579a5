package engine

import "math/bits"

const (
	groupLen     = 8
	segmentSlots = 512
	segmentLoad  = segmentSlots * 7 / 8
	segmentBytes = segmentSlots*5 + 128 // as the allocator rounds it
)

// segment holds the entries whose hashes share their leading depth bits.
type segment struct {
	refs  [segmentSlots]ref
	ctrl  [segmentSlots]uint8 // tag of the hash, or one of the marks below
	live  uint16
	dead  uint16 // slots marked gone
	depth uint8
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

func newSegment(depth uint8) *segment {
	g := &segment{depth: depth}
	for i := range g.ctrl {
		g.ctrl[i] = slotEmpty
	}
	return g
}

// Of a hash the leading bits choose the segment, bits 16..22 are the tag and bits
// 23..28 the first group. The lowest bits are empty: a shard shifts away the bits
// that chose it.
func tagOf(h uint64) uint8       { return uint8(h >> 16 & 0x7f) }
func firstGroup(h uint64) uint64 { return h >> 23 % (segmentSlots / groupLen) }

// probe visits the groups of a segment in an order that reaches all of them.
type probe struct{ group, step uint64 }

func startProbe(h uint64) probe { return probe{group: firstGroup(h)} }

func (p *probe) next() {
	p.step++
	p.group = (p.group + p.step) % (segmentSlots / groupLen)
}

func (g *segment) word(group uint64) uint64 { return le.Uint64(g.ctrl[group*groupLen:]) }

// matchTag returns a mask with the high bit of each byte that may equal tag; a
// byte above a true match may be marked falsely, so the key decides.
func matchTag(word uint64, tag uint8) uint64 {
	v := word ^ (lowBits * uint64(tag))
	return (v - lowBits) &^ v & highBits
}

// matchEmpty marks the bytes that are slotEmpty.
func matchEmpty(word uint64) uint64 { return word &^ (word << 6) & highBits }

// matchFree marks the bytes that are slotEmpty or slotGone.
func matchFree(word uint64) uint64 { return word & highBits }

func (g *segment) put(h uint64, r ref) {
	for p := startProbe(h); ; p.next() {
		if m := matchFree(g.word(p.group)); m != 0 {
			pos := int(p.group*groupLen) + bits.TrailingZeros64(m)/8
			if g.ctrl[pos] == slotGone {
				g.dead--
			}
			g.ctrl[pos], g.refs[pos] = tagOf(h), r
			g.live++
			return
		}
	}
}

// clear empties a slot. It can be marked empty when its group has an empty slot
// already: no probe ever went past such a group.
func (g *segment) clear(pos int) {
	g.live--
	if matchEmpty(g.word(uint64(pos/groupLen))) != 0 {
		g.ctrl[pos] = slotEmpty
		return
	}
	g.ctrl[pos] = slotGone
	g.dead++
}

// each calls visit for the entries of a segment.
func (g *segment) each(visit func(ref)) {
	for pos, c := range g.ctrl {
		if c < slotEmpty {
			visit(g.refs[pos])
		}
	}
}

// sweep rebuilds a segment without its gone marks.
func (g *segment) sweep(hashOf func(ref) uint64) {
	old := *g
	for i := range g.ctrl {
		g.ctrl[i] = slotEmpty
	}
	g.live, g.dead = 0, 0
	old.each(func(r ref) { g.put(hashOf(r), r) })
}
