package engine

import "math/bits"

// A page keeps one mark for every four words. No entry is shorter than that, so no two of
// them share a mark.
const (
	markWords = 4
	pageMarks = (pageLen/8/markWords + 64) / 64 * 64 // 512
)

func (p *page) unmark(word uint16) {
	i := word / markWords
	p.marks[i/64] &^= 1 << (i % 64)
}

// hasMark reports whether the entry in a slot changed.
func (p *page) hasMark(word uint16) bool {
	i := word / markWords
	return p.marks[i/64]>>(i%64)&1 != 0
}

// mark notes that the entry in a slot changed. It reports whether the page had been
// without marks and must be listed.
func (p *page) mark(word uint16) (first bool) {
	i := word / markWords
	p.marks[i/64] |= 1 << (i % 64)
	first = !p.marked
	p.marked = true
	return first
}

// takeMark removes a mark and returns the word its slot begins with.
func (p *page) takeMark() (word uint16, ok bool) {
	for i, m := range p.marks {
		if m == 0 {
			continue
		}
		p.marks[i] &= m - 1
		return p.wordOf(i, m), true
	}
	p.marked = false
	return 0, false
}

// wordOf returns the word that the slot of the lowest mark in m begins with; m is marks[i].
func (p *page) wordOf(i int, m uint64) uint16 {
	mark, slotWords := uint16(i*64+bits.TrailingZeros64(m)), slotLens[p.class]/8
	return (mark*markWords + slotWords - 1) / slotWords * slotWords
}

// fetchMarked reads of the next n marked entries what is to be encoded. Like slab.fetch it waits
// for nothing, so the processor loads them side by side.
func (p *page) fetchMarked(n int) (sum uint64) {
	for i, m := range p.marks {
		for ; m != 0 && n > 0; m &= m - 1 {
			sum += p.fetch(p.wordOf(i, m))
			n--
		}
	}
	return sum
}
