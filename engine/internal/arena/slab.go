package arena

import "github.com/weir-project/weir/internal/offheap"

// Ref is a reference to a slot of a slab: the number of the page in the high bits, and in the lowest wordBits
// bits the offset in the page, in words of eight bytes. Zero means no slot.
type Ref = uint32

const (
	pageLen   = 16<<10 - pageHead
	pageHead  = 88 // bytes of the other fields of page, so that a page has 16 KiB in all
	PageBytes = pageLen + pageHead
	wordBits  = 11                   // 16 KiB in words
	maxPages  = 1 << (31 - wordBits) // 16 GiB
	noWord    = 1<<16 - 1
	MaxRecord = 1024 // bytes of the largest slot
)

// slotLens are the sizes that a slot may have, in ascending order. A class is an index in slotLens. Small sizes
// ascend by one word, because most entries are small. Each larger size is at most a third above the one before.
var slotLens = [...]uint16{
	16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120, 128,
	160, 192, 224, 256, 320, 384, 448, 512, 640, 768, MaxRecord,
}

// NumClasses is how many sizes of slots there are.
const NumClasses = len(slotLens)

// page holds slots of one class.
type page struct {
	data        [pageLen]byte
	dirty       [dirtyBits / 64]uint64 // the dirty bits
	next        uint32                 // neighbours in the class's list of pages with free slots
	prev        uint32
	live        uint16 // slots in use
	fresh       uint16 // first word never used
	freed       uint16 // first word of the chain of freed slots, or noWord
	class       uint8
	listed      bool // in the list of pages with free slots
	listedDirty bool // in the caller's list of pages with dirty bits
	emptying    bool // compaction empties the page, and Alloc does not use it
}

// Pages hands out the pages of the slabs of one table.
type Pages = offheap.Blocks[page]

// Slab is an allocator of small byte slots in pages. A page whose last slot is
// freed can serve another class. It is not safe for concurrent use.
type Slab struct {
	pages   offheap.List[page]    // by number; number 0 is never used, so that Ref 0 means no slot
	spare   []uint32              // numbers of empty pages kept for reuse
	vacant  []uint32              // numbers without a page
	partial [len(slotLens)]uint32 // by class: first page with free slots, 0 for none
	live    [len(slotLens)]int    // by class: slots in use
	count   [len(slotLens)]int    // by class: pages
	inUse   int64                 // bytes of slots in use
	used    *Meter                // bytes of pages
	source  *Pages
}

// maxSpare bounds the empty pages that a slab keeps for reuse. It returns further pages to their source.
const maxSpare = 2

// NewSlab returns a slab without pages, which takes pages from a source. used counts its bytes.
func NewSlab(source *Pages, used *Meter) Slab {
	return Slab{pages: offheap.NewList[page](1), used: used, source: source}
}

// ClassOf returns the smallest class that holds n bytes.
func ClassOf(n int) uint8 {
	if n <= 128 {
		return uint8(max(n-9, 0)) >> 3
	}
	class := uint8(15)
	for int(slotLens[class]) < n {
		class++
	}
	return class
}

// HasSlot reports whether a slot of n bytes can be allocated without a new page.
func (s *Slab) HasSlot(n int) bool { return s.HasFreeSlot(n) || len(s.spare) > 0 }

// HasFreeSlot reports whether a slot of n bytes is free on a page of its class.
func (s *Slab) HasFreeSlot(n int) bool { return s.partial[ClassOf(n)] != 0 }

// Alloc allocates a slot of at least n bytes, 1..MaxRecord. Its content is undefined.
func (s *Slab) Alloc(n int) Ref {
	class := ClassOf(n)
	id := s.partial[class]
	if id == 0 {
		id = s.newPage(class)
	}
	p := s.page(id)
	word := p.freed
	if word != noWord {
		p.freed = le.Uint16(p.data[int(word)*8:])
	} else {
		word = p.fresh
		p.fresh += slotLens[class] / 8
	}
	p.live++
	s.live[class]++
	s.inUse += int64(slotLens[class])
	if p.freed == noWord && !p.hasFresh() {
		s.unlist(id, p)
	}
	return id<<wordBits | uint32(word)
}

func (p *page) hasFresh() bool {
	return int(p.fresh)*8+int(slotLens[p.class]) <= pageLen
}

// Free frees a slot.
func (s *Slab) Free(r Ref) {
	id, word := r>>wordBits, uint16(r&(1<<wordBits-1))
	p := s.page(id)
	p.clearDirty(word)
	le.PutUint16(p.data[int(word)*8:], p.freed)
	p.freed = word
	p.live--
	s.live[p.class]--
	s.inUse -= int64(slotLens[p.class])
	if !p.listed && !p.emptying {
		s.list(id, p)
	}
	if p.live == 0 {
		s.release(id, p)
	}
}

// At returns the bytes from the slot's first byte on. The slice extends beyond the slot. The caller knows the
// end from the content, or from Len.
func (s *Slab) At(r Ref) []byte {
	return s.page(r >> wordBits).data[int(r&(1<<wordBits-1))*8:]
}

// fetchedBytes is an offset in the second cache line of an entry, in which most entries have their state.
const fetchedBytes = 36

// Prefetch reads the parts of a slot that a decision needs: its first bytes, its state, and its dirty bit, which
// is elsewhere on the page. The result only keeps the compiler from dropping the reads.
func (s *Slab) Prefetch(r Ref) uint64 {
	p, word := s.page(r>>wordBits), uint16(r&(1<<wordBits-1))
	return p.prefetch(word) + p.dirty[word/WordsPerDirtyBit/64]
}

// PrefetchBehind reads the part of a slot behind what Prefetch reads, up to n bytes.
func (s *Slab) PrefetchBehind(r Ref, n int) (sum uint64) {
	return s.page(r>>wordBits).prefetchBehind(uint16(r&(1<<wordBits-1)), n)
}

func (p *page) prefetchBehind(word uint16, n int) (sum uint64) {
	at := int(word) * 8
	for i := fetchedBytes + cacheLine; i < n; i += cacheLine {
		sum += uint64(p.data[min(at+i, pageLen-1)])
	}
	return sum
}

// cacheLine is the size of a cache line of most processors.
const cacheLine = 64

// prefetch reads the first bytes of a slot and its state.
func (p *page) prefetch(word uint16) uint64 {
	at := int(word) * 8
	return uint64(p.data[at]) + uint64(p.data[min(at+fetchedBytes, pageLen-1)])
}

// slot returns the slot's bytes.
func (s *Slab) slot(r Ref) []byte { return s.At(r)[:s.Len(r)] }

// Len returns the slot's size in bytes.
func (s *Slab) Len(r Ref) int { return int(slotLens[s.page(r>>wordBits).class]) }

func (s *Slab) page(id uint32) *page { return s.pages.At(int(id)) }

// newPage prepares an empty page for a class and lists it.
func (s *Slab) newPage(class uint8) uint32 {
	id := s.emptyPage()
	p := s.page(id)
	p.class, p.live, p.fresh, p.freed = class, 0, 0, noWord
	s.count[class]++
	s.list(id, p)
	return id
}

// emptyPage returns the number of a page without slots in use.
func (s *Slab) emptyPage() uint32 {
	if n := len(s.spare); n > 0 {
		id := s.spare[n-1]
		s.spare = s.spare[:n-1]
		return id
	}
	id := uint32(s.pages.Len())
	if n := len(s.vacant); n > 0 {
		id, s.vacant = s.vacant[n-1], s.vacant[:n-1]
	} else if id == maxPages {
		panic("engine: more than 16 GiB in one shard; use more shards")
	} else {
		s.pages.Append(nil)
	}
	s.pages.Set(int(id), s.source.Take())
	s.used.Add(PageBytes)
	return id
}

// release makes an empty page available to all classes. It keeps up to maxSpare such pages.
func (s *Slab) release(id uint32, p *page) {
	if p.listed {
		s.unlist(id, p)
	}
	p.emptying = false
	s.count[p.class]--
	s.spare = append(s.spare, id)
	if len(s.spare) > maxSpare {
		s.ReturnSpare()
	}
}

// ReturnSpare returns an empty page to its source. It returns false if the slab keeps none.
func (s *Slab) ReturnSpare() bool {
	n := len(s.spare)
	if n == 0 {
		return false
	}
	id := s.spare[n-1]
	s.spare = s.spare[:n-1]
	s.source.Return(s.page(id))
	s.pages.Set(int(id), nil)
	s.vacant = append(s.vacant, id)
	s.used.Add(-PageBytes)
	return true
}

// Batch is a list of pages for Pages.ReturnAll.
type Batch []*page

// Discard adds all pages to a batch. The slab must not be used any more.
func (s *Slab) Discard(to *Batch) {
	for i := range s.pages.Len() {
		if p := s.pages.At(i); p != nil {
			*to = append(*to, p)
			s.used.Add(-PageBytes)
		}
	}
	s.pages = offheap.List[page]{}
}

func (s *Slab) list(id uint32, p *page) {
	head := s.partial[p.class]
	p.next, p.prev, p.listed = head, 0, true
	if head != 0 {
		s.page(head).prev = id
	}
	s.partial[p.class] = id
}

func (s *Slab) unlist(id uint32, p *page) {
	if p.next != 0 {
		s.page(p.next).prev = p.prev
	}
	if p.prev != 0 {
		s.page(p.prev).next = p.next
	} else {
		s.partial[p.class] = p.next
	}
	p.next, p.prev, p.listed = 0, 0, false
}

// UsedBytes returns the size of the slots in use.
func (s *Slab) UsedBytes() int64 { return s.inUse }

// PagesOf returns the number of pages of a class.
func (s *Slab) PagesOf(class uint8) int { return s.count[class] }

// SparePages returns the number of empty pages that are kept for reuse.
func (s *Slab) SparePages() int { return len(s.spare) }

// PageCount returns the number of pages, including page 0.
func (s *Slab) PageCount() int { return s.pages.Len() - len(s.vacant) }
