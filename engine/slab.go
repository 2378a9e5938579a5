package engine

// ref names a slot of a slab: the page and the offset in it, in words of eight
// bytes. Zero is no slot.
type ref = uint32

const (
	pageLen   = 16<<10 - pageHead
	pageHead  = 88 // what a page keeps about itself, so that a page is 16 KiB in all
	pageBytes = pageLen + pageHead
	wordBits  = 11                   // 16 KiB in words
	maxPages  = 1 << (31 - wordBits) // 16 GiB
	noWord    = 1<<16 - 1
	maxRecord = 1024 // bytes; the largest class
)

// slotLens are the sizes a slot may have, ascending. Small ones are exact to a
// word because most entries are small; larger ones grow by a quarter at most.
var slotLens = [...]uint16{
	16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120, 128,
	160, 192, 224, 256, 320, 384, 448, 512, 640, 768, maxRecord,
}

// page holds slots of one class.
type page struct {
	data   [pageLen]byte
	marks  [pageMarks / 64]uint64 // the slots in which something changed
	next   uint32                 // neighbours in the class's list of pages with room
	prev   uint32
	live   uint16 // slots in use
	fresh  uint16 // first word never used
	freed  uint16 // first word of the chain of freed slots, or noWord
	class  uint8
	listed bool // in the list of pages with room
	marked bool // in the list of pages with marks
	leaves bool // compaction empties it, and nothing new goes there
}

// slab is an allocator of small byte slots in pages. A page whose last slot is
// freed can serve another class. It is not safe for concurrent use.
type slab struct {
	pages  []*page               // page 0 is never used, so that ref 0 is none
	spare  []uint32              // numbers of empty pages kept for reuse
	vacant []uint32              // numbers without a page
	room   [len(slotLens)]uint32 // by class: first page with room, 0 for none
	live   [len(slotLens)]int    // by class: slots in use
	count  [len(slotLens)]int    // by class: pages
	taken  int64                 // bytes of slots in use
	used   *meter                // bytes of pages
}

// maxSpare bounds the empty pages a slab keeps for reuse before it gives them
// back to the garbage collector.
const maxSpare = 2

func newSlab(used *meter) slab { return slab{pages: make([]*page, 1), used: used} }

// classOf returns the smallest class that holds n bytes.
func classOf(n int) uint8 {
	if n <= 128 {
		return uint8(max(n-9, 0)) >> 3
	}
	class := uint8(15)
	for int(slotLens[class]) < n {
		class++
	}
	return class
}

// hasRoom reports whether a slot of n bytes is there without a new page.
func (s *slab) hasRoom(n int) bool { return s.room[classOf(n)] != 0 || len(s.spare) > 0 }

// alloc returns a slot of at least n bytes, 1..maxRecord. Its content is undefined.
func (s *slab) alloc(n int) ref {
	class := classOf(n)
	id := s.room[class]
	if id == 0 {
		id = s.newPage(class)
	}
	p := s.pages[id]
	word := p.freed
	if word != noWord {
		p.freed = le.Uint16(p.data[int(word)*8:])
	} else {
		word = p.fresh
		p.fresh += slotLens[class] / 8
	}
	p.live++
	s.live[class]++
	s.taken += int64(slotLens[class])
	if p.freed == noWord && !p.hasFresh() {
		s.unlist(id, p)
	}
	return id<<wordBits | uint32(word)
}

func (p *page) hasFresh() bool {
	return int(p.fresh)*8+int(slotLens[p.class]) <= pageLen
}

// free gives a slot back.
func (s *slab) free(r ref) {
	id, word := r>>wordBits, uint16(r&(1<<wordBits-1))
	p := s.pages[id]
	p.unmark(word)
	le.PutUint16(p.data[int(word)*8:], p.freed)
	p.freed = word
	p.live--
	s.live[p.class]--
	s.taken -= int64(slotLens[p.class])
	if !p.listed && !p.leaves {
		s.list(id, p)
	}
	if p.live == 0 {
		s.release(id, p)
	}
}

// at returns the bytes from the slot's first on. Where the slot ends is known from
// what it holds, or from len; looking that up here would cost every access.
func (s *slab) at(r ref) []byte {
	return s.pages[r>>wordBits].data[int(r&(1<<wordBits-1))*8:]
}

// fetchedBytes reaches into the second cache line of an entry: where the state of most is.
const fetchedBytes = 36

// fetch reads what a decision needs of a slot: its first bytes, its state and the mark that
// says it has changed, which is far away from them.
func (s *slab) fetch(r ref) uint64 {
	p, word := s.pages[r>>wordBits], uint16(r&(1<<wordBits-1))
	return p.fetch(word) + p.marks[word/markWords/64]
}

// fetch reads the first bytes of a slot and its state.
func (p *page) fetch(word uint16) uint64 {
	at := int(word) * 8
	return uint64(p.data[at]) + uint64(p.data[min(at+fetchedBytes, pageLen-1)])
}

// slot returns the slot's bytes.
func (s *slab) slot(r ref) []byte { return s.at(r)[:s.len(r)] }

// len returns the slot's size in bytes.
func (s *slab) len(r ref) int { return int(slotLens[s.pages[r>>wordBits].class]) }

// newPage readies an empty page for class and lists it.
func (s *slab) newPage(class uint8) uint32 {
	id := s.emptyPage()
	p := s.pages[id]
	p.class, p.live, p.fresh, p.freed = class, 0, 0, noWord
	s.count[class]++
	s.list(id, p)
	return id
}

// emptyPage returns the number of a page without slots in use.
func (s *slab) emptyPage() uint32 {
	if n := len(s.spare); n > 0 {
		id := s.spare[n-1]
		s.spare = s.spare[:n-1]
		return id
	}
	id := uint32(len(s.pages))
	if n := len(s.vacant); n > 0 {
		id, s.vacant = s.vacant[n-1], s.vacant[:n-1]
	} else if id == maxPages {
		panic("engine: more than 16 GiB in one shard; use more shards")
	} else {
		s.pages = append(s.pages, nil)
	}
	s.pages[id] = new(page)
	s.used.add(pageBytes)
	return id
}

// release takes an empty page out of service.
func (s *slab) release(id uint32, p *page) {
	if p.listed {
		s.unlist(id, p)
	}
	p.leaves = false
	s.count[p.class]--
	s.spare = append(s.spare, id)
	if len(s.spare) > maxSpare {
		s.returnSpare()
	}
}

// returnSpare gives an empty page back to the garbage collector; false when none is kept.
func (s *slab) returnSpare() bool {
	n := len(s.spare)
	if n == 0 {
		return false
	}
	id := s.spare[n-1]
	s.spare = s.spare[:n-1]
	s.pages[id] = nil
	s.vacant = append(s.vacant, id)
	s.used.add(-pageBytes)
	return true
}

func (s *slab) list(id uint32, p *page) {
	head := s.room[p.class]
	p.next, p.prev, p.listed = head, 0, true
	if head != 0 {
		s.pages[head].prev = id
	}
	s.room[p.class] = id
}

func (s *slab) unlist(id uint32, p *page) {
	if p.next != 0 {
		s.pages[p.next].prev = p.prev
	}
	if p.prev != 0 {
		s.pages[p.prev].next = p.next
	} else {
		s.room[p.class] = p.next
	}
	p.next, p.prev, p.listed = 0, 0, false
}

// bytes is what the pages of a slab count for.
func (s *slab) bytes() int64 {
	return int64(len(s.pages)-1-len(s.vacant)) * pageBytes
}
