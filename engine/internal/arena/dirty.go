package arena

import "math/bits"

// A page keeps one dirty bit for every four words. Only entries are marked dirty, and the slot
// of an entry has at least four words. So no two entries share a bit.
const (
	WordsPerDirtyBit = 4
	dirtyBits        = (pageLen/8/WordsPerDirtyBit + 64) / 64 * 64 // 512
)

func (p *page) clearDirty(word uint16) {
	i := word / WordsPerDirtyBit
	p.dirty[i/64] &^= 1 << (i % 64)
}

// isDirty reports whether the entry in a slot changed.
func (p *page) isDirty(word uint16) bool {
	i := word / WordsPerDirtyBit
	return p.dirty[i/64]>>(i%64)&1 != 0
}

// popDirty clears a dirty bit and returns the first word of its slot.
func (p *page) popDirty() (word uint16, ok bool) {
	for i, m := range p.dirty {
		if m == 0 {
			continue
		}
		p.dirty[i] &= m - 1
		return p.wordOf(i, m), true
	}
	p.listedDirty = false
	return 0, false
}

// wordOf returns the first word of the slot of the lowest bit in m; m is dirty[i].
func (p *page) wordOf(i int, m uint64) uint16 {
	mark, slotWords := uint16(i*64+bits.TrailingZeros64(m)), slotLens[p.class]/8
	return (mark*WordsPerDirtyBit + slotWords - 1) / slotWords * slotWords
}

// prefetchDirty reads the bytes that encoding needs of the next n changed slots. Like Slab.Prefetch it waits for
// no load, so the processor loads them side by side.
func (p *page) prefetchDirty(n int) (sum uint64) {
	size := int(slotLens[p.class])
	for i, m := range p.dirty {
		for ; m != 0 && n > 0; m &= m - 1 {
			word := p.wordOf(i, m)
			sum += p.prefetch(word) + p.prefetchBehind(word, size)
			n--
		}
	}
	return sum
}

// MarkDirty sets the dirty bit of a slot. It returns the slot's page, and whether this is the first dirty bit of
// the page. The caller then adds the page to its list of pages with dirty bits.
func (s *Slab) MarkDirty(r Ref) (page uint32, first bool) {
	page = r >> wordBits
	p, i := s.page(page), uint16(r&(1<<wordBits-1))/WordsPerDirtyBit
	p.dirty[i/64] |= 1 << (i % 64)
	first = !p.listedDirty
	p.listedDirty = true
	return page, first
}

// IsDirty reports whether the entry in a slot changed.
func (s *Slab) IsDirty(r Ref) bool {
	return s.page(r >> wordBits).isDirty(uint16(r & (1<<wordBits - 1)))
}

// PopDirty clears a dirty bit of a page and returns its slot, or 0 if the page has no dirty bit or was freed.
func (s *Slab) PopDirty(page uint32) Ref {
	p := s.page(page)
	if p == nil {
		return 0
	}
	word, ok := p.popDirty()
	if !ok {
		return 0
	}
	return page<<wordBits | uint32(word)
}

// HasDirty reports whether a page may have dirty bits.
func (s *Slab) HasDirty(page uint32) bool {
	p := s.page(page)
	return p != nil && p.listedDirty
}

// PrefetchDirty reads the bytes that encoding needs of the next n changed entries of a page. The result only
// keeps the compiler from dropping the reads.
func (s *Slab) PrefetchDirty(page uint32, n int) uint64 {
	if p := s.page(page); p != nil {
		return p.prefetchDirty(n)
	}
	return 0
}
