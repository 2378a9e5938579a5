package arena

import (
	"cmp"
	"slices"
)

// SurplusPages returns how many pages would be free if each class had all its free slots on as few pages as
// possible.
func (s *Slab) SurplusPages() (n int) {
	for class := range s.count {
		n += s.Surplus(uint8(class))
	}
	return n
}

// Surplus returns how many pages the free slots of a class would fill.
func (s *Slab) Surplus(class uint8) int { return s.FreeSlots(class) / perPage(class) }

// Lacks returns how many more slots of a class must become free until its free slots would fill the given number
// of pages.
func (s *Slab) Lacks(class uint8, pages int) int {
	return max(pages*perPage(class)-s.FreeSlots(class), 0)
}

// FreeSlots returns how many slots on the pages of a class are free.
func (s *Slab) FreeSlots(class uint8) int { return s.count[class]*perPage(class) - s.live[class] }

// perPage returns how many slots of a class a page has.
func perPage(class uint8) int { return pageLen / int(slotLens[class]) }

// Vacate selects the n emptiest pages of a class for emptying. It removes them from the list of pages with free
// slots, and appends their numbers to list.
func (s *Slab) Vacate(class uint8, n int, list []uint32) []uint32 {
	from := len(list)
	for id := s.partial[class]; id != 0; id = s.page(id).next {
		list = append(list, id)
	}
	slices.SortFunc(list[from:], func(a, b uint32) int { return cmp.Compare(s.page(a).live, s.page(b).live) })
	list = list[:min(from+n, len(list))]
	for _, id := range list[from:] {
		p := s.page(id)
		s.unlist(id, p)
		p.emptying = true
	}
	return list
}

// KeepPages returns pages that could not be emptied to their class.
func (s *Slab) KeepPages(pages []uint32) {
	for _, id := range pages {
		if p := s.page(id); p != nil && p.emptying {
			p.emptying = false
			s.list(id, p)
		}
	}
}

// BeingEmptied reports whether a slot is on a page that is being emptied.
func (s *Slab) BeingEmptied(r Ref) bool { return s.page(r >> wordBits).emptying }

// MoveSlot copies a slot to a free slot of its class and returns that slot, or 0 if there is none.
func (s *Slab) MoveSlot(from Ref) (to Ref) {
	n := s.Len(from)
	if !s.HasFreeSlot(n) { // other entries took the free slots since Vacate
		return 0
	}
	to = s.Alloc(n)
	copy(s.slot(to), s.slot(from))
	return to
}

// Blocks of all kinds begin with the reference to the next block.

// FreeChain frees the blocks of a chain.
func (s *Slab) FreeChain(r Ref) {
	for r != 0 {
		next := le.Uint32(s.At(r))
		s.Free(r)
		r = next
	}
}

// ChainBytes returns the size of the blocks of a chain.
func (s *Slab) ChainBytes(r Ref) (n int) {
	for ; r != 0; r = le.Uint32(s.At(r)) {
		n += s.Len(r)
	}
	return n
}

// MoveChain moves the blocks of a chain off pages that are being emptied. It returns the first and the last block.
func (s *Slab) MoveChain(first Ref) (head, tail Ref) {
	head = first
	for r := first; r != 0; {
		if s.page(r >> wordBits).emptying {
			if to := s.MoveSlot(r); to != 0 {
				s.Free(r)
				if r = to; tail == 0 {
					head = to
				} else {
					le.PutUint32(s.At(tail), to)
				}
			}
		}
		tail, r = r, le.Uint32(s.At(r))
	}
	return head, tail
}

// ClassAt returns the class of a slot.
func (s *Slab) ClassAt(r Ref) uint8 { return s.page(r >> wordBits).class }

// ChainUses reports whether one of the first most blocks of a chain is a slot of a class.
func (s *Slab) ChainUses(r Ref, class uint8, most int) bool {
	for i := 0; r != 0 && i < most; i++ {
		if s.ClassAt(r) == class {
			return true
		}
		r = le.Uint32(s.At(r))
	}
	return false
}
