package store

import "github.com/weir-project/weir/engine/internal/arena"

// Change is one entry as it is stored: Value nil means the entry is gone. Key is an
// opaque storage key (not the client's key alone), Value an encoding that Load
// understands. Both are only valid until the call they are handed to returns.
type Change struct{ Key, Value []byte }

// changeLog remembers which entries of a shard changed since the last Drain. Its
// lists are bounded by the entries there are, or were when they were stored.
type changeLog struct {
	on      bool
	pages   []uint32 // pages with dirty bits
	removed removals // stored entries that are gone
}

// removals are storage keys, each with its length, in pieces: where limiters are soon idle
// they are as many as decisions, and one growing buffer would be copied several times.
type removals [][]byte

const removalsPiece = 4 << 10 // bytes; of several keys, and few are lost at its end

func (l *removals) add(kind byte, key []byte) {
	n, last := len(key)+1, len(*l)-1
	if last < 0 || cap((*l)[last])-len((*l)[last]) < 2+n {
		*l = append(*l, make([]byte, 0, removalsPiece))
		last++
	}
	(*l)[last] = append(append((*l)[last], byte(n), byte(n>>8), kind), key...)
}

// take returns the first key and removes it. It is valid until the next add.
func (l *removals) take() []byte {
	piece := (*l)[0]
	end := 2 + int(piece[0]) + int(piece[1])<<8
	if (*l)[0] = piece[end:]; end == len(piece) {
		(*l)[0] = nil
		*l = (*l)[1:]
	}
	return piece[2:end]
}

// Changed notes that an entry changed.
func (s *Store) Changed(r arena.Ref) {
	if s.changes.on {
		if page, first := s.Slab.MarkDirty(r); first {
			s.changes.pages = append(s.changes.pages, page)
		}
	}
}

// noteRemoval notes that an entry is being removed.
func (l *changeLog) noteRemoval(e Entry) {
	if l.on && e.has(flagStored) {
		l.removed.add(storageKind(e), e.Key())
	}
}

// The first byte of a storage key says what it is the key of.
var StorageKinds = [...]byte{Limiters: 'l', Blocks: 'b', Tokens: 't', Holds: 'h', Allocations: 'c'}

func storageKind(e Entry) byte { return StorageKinds[SpaceOf(e.Kind())] }

// Batch collects changes in one buffer.
type Batch struct {
	buf   []byte
	spans []span
}

// span is a change by its places in the buffer; value is empty for a removal.
type span struct{ key, value, end int }

// Len is how many changes there are.
func (b *Batch) Len() int { return len(b.spans) }

// Full reports whether they are as many bytes as a chunk should have.
func (b *Batch) Full() bool { return len(b.buf) >= DrainBytes }

// Add adds a change of what is no entry, with a value that write appends: nothing for a removal.
func (b *Batch) Add(class byte, name string, write func([]byte) []byte) {
	start := len(b.buf)
	b.buf = append(append(b.buf, class), name...)
	value := len(b.buf)
	b.buf = write(b.buf)
	b.spans = append(b.spans, span{start, value, len(b.buf)})
}

// Reset forgets the changes and keeps their memory.
func (b *Batch) Reset() { b.buf, b.spans = b.buf[:0], b.spans[:0] }

// Changes returns what was collected, in the order in which it happened.
func (b *Batch) Changes(out []Change) []Change {
	for _, s := range b.spans {
		c := Change{Key: b.buf[s.key:s.value]}
		if s.end > s.value {
			c.Value = b.buf[s.value:s.end]
		}
		out = append(out, c)
	}
	return out
}

// drainStep bounds how many entries are encoded under one lock.
const drainStep = 256

// DrainBytes is how many bytes of changes make a chunk whatever its entries: a
// sliding log may have megabytes.
const DrainBytes = 4 << 20

// drainFetch is how many entries of a page are fetched side by side: those that have changed
// are anywhere in it, and the processor has room for about as many loads that wait for memory.
const drainFetch = 16

// DrainBatch moves up to n changes into the batch and reports whether there are
// more. Removals go first: a key removed and made again must end up there.
func (s *Store) DrainBatch(b *Batch, n int) bool {
	n = min(n, drainStep)
	l := &s.changes
	for ; n > 0 && len(l.removed) > 0; n-- {
		key := len(b.buf)
		b.buf = append(b.buf, l.removed.take()...)
		b.spans = append(b.spans, span{key, len(b.buf), len(b.buf)})
	}
	for n > 0 && len(l.pages) > 0 && len(b.buf) < DrainBytes {
		id := l.pages[len(l.pages)-1]
		n = s.drainPage(b, id, n)
		if !s.Slab.HasDirty(id) {
			l.pages = l.pages[:len(l.pages)-1]
		}
	}
	l.shrink()
	return len(l.removed)+len(l.pages) > 0
}

// drainPage moves up to n changed entries of a page into the batch and returns what
// is left of n. A page that was given back has none.
func (s *Store) drainPage(b *Batch, id uint32, n int) int {
	for i := 0; n > 0 && len(b.buf) < DrainBytes; i++ {
		if i%drainFetch == 0 {
			s.fetched += s.Slab.PrefetchDirty(id, drainFetch)
		}
		r := s.Slab.TakeDirty(id)
		if r == 0 {
			break
		}
		e := Entry(s.Slab.At(r))
		e.set(flagStored)
		s.encode(b, e)
		n--
	}
	return n
}

// shrink gives back what a burst of changes made the lists take.
func (l *changeLog) shrink() {
	if len(l.pages) == 0 {
		l.pages = nil
	}
	if len(l.removed) == 0 {
		l.removed = nil
	}
}
