package store

import "github.com/weir-project/weir/engine/internal/arena"

// Change is one entry in its stored form. A nil Value means that the entry is gone; encodeBundle says what it means for
// a bundle. Key is an opaque storage key (not the client's key alone), and Value an encoding that Load reads. Both are
// valid only until the call that receives them returns.
type Change struct{ Key, Value []byte }

// changeLog records which entries of a shard changed since the last Drain. The number of pages bounds its list of
// pages. The number of entries that were stored bounds its list of removals.
type changeLog struct {
	on      bool
	joint   bool     // see Joint
	pages   []uint32 // pages with dirty bits
	removed removals // stored entries that are gone
}

// removals are storage keys with their lengths, in pieces. If limiters become idle soon after their use, a drain
// has about as many removals as decisions. A single growing buffer would then be copied several times.
type removals [][]byte

const removalsPiece = 4 << 10 // bytes; a piece holds several keys, so little is lost at its end

func (l *removals) add(kind byte, key []byte) {
	n, last := len(key)+1, len(*l)-1
	if last < 0 || cap((*l)[last])-len((*l)[last]) < 2+n {
		*l = append(*l, make([]byte, 0, removalsPiece))
		last++
	}
	(*l)[last] = append(append((*l)[last], byte(n), byte(n>>8), kind), key...)
}

// pop removes and returns the first key. It is valid until the next add.
func (l *removals) pop() []byte {
	piece := (*l)[0]
	end := 2 + int(piece[0]) + int(piece[1])<<8
	if (*l)[0] = piece[end:]; end == len(piece) {
		(*l)[0] = nil
		*l = (*l)[1:]
	}
	return piece[2:end]
}

// Joint reports whether an operation has changed this store and something outside it since the last ForgetJoint.
func (s *Store) Joint() bool { return s.changes.joint }

// ForgetJoint is called when all changes of all stores have been drained.
func (s *Store) ForgetJoint() { s.changes.joint = false }

// MarkJoint records that the present operation also changes another store, or something else.
func (s *Store) MarkJoint() { s.changes.joint = true }

// Changed records that an entry changed.
func (s *Store) Changed(r arena.Ref) {
	if s.changes.on {
		if page, first := s.Slab.MarkDirty(r); first {
			s.changes.pages = append(s.changes.pages, page)
		}
	}
}

// noteRemoval records that an entry with this key is being removed.
func (l *changeLog) noteRemoval(e Entry, key []byte) {
	if e.has(flagStored) {
		l.noteRemovalOf(storageKind(e), key)
	}
}

// noteRemovalOf records that an entry or a bundle with this class byte and key is being removed.
func (l *changeLog) noteRemovalOf(class byte, key []byte) {
	if l.on {
		l.removed.add(class, key)
	}
}

// StorageKinds has the first byte of storage keys, the class byte, by the space of the key.
var StorageKinds = [...]byte{Limiters: 'l', Blocks: 'b', Tokens: 't', Holds: 'h', Allocations: 'c', Bundles: 'm'}

func storageKind(e Entry) byte { return StorageKinds[SpaceOf(e.Kind())] }

// Batch collects changes in one buffer.
type Batch struct {
	buf   []byte
	spans []span
}

// span is a change by its positions in the buffer. value is empty for a removal.
type span struct{ key, value, end int }

// Len returns the number of changes.
func (b *Batch) Len() int { return len(b.spans) }

// Full reports whether the changes have as many bytes as a chunk should have.
func (b *Batch) Full() bool { return len(b.buf) >= DrainBytes }

// Add adds a change of something other than an entry. write appends its value, or nothing for a removal.
func (b *Batch) Add(class byte, name string, write func([]byte) []byte) {
	start := len(b.buf)
	b.buf = append(append(b.buf, class), name...)
	value := len(b.buf)
	b.buf = write(b.buf)
	b.spans = append(b.spans, span{start, value, len(b.buf)})
}

// Reset removes the changes and keeps their memory.
func (b *Batch) Reset() { b.buf, b.spans = b.buf[:0], b.spans[:0] }

// Changes returns the collected changes in the order in which they were added.
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

// DrainBytes is how many bytes of changes complete a chunk, even with few entries: a sliding log may have
// megabytes.
const DrainBytes = 4 << 20

// drainFetch is how many entries of a page are prefetched side by side. Changed entries are scattered over a
// page, and a processor supports about as many outstanding loads.
const drainFetch = 16

// DrainBatch moves up to n changes into the batch and reports whether more are left. Removals go first: a key that
// was removed and created again must exist after the batch.
func (s *Store) DrainBatch(b *Batch, n int) bool {
	n = min(n, drainStep)
	s.heads.count = 0 // the number of a limit may mean another limit now
	l := &s.changes
	for ; n > 0 && len(l.removed) > 0; n-- {
		key := len(b.buf)
		b.buf = append(b.buf, l.removed.pop()...)
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

// drainPage moves up to n changed entries of a page into the batch. It returns n less the number of entries moved.
// A page that was freed has no changed entries.
func (s *Store) drainPage(b *Batch, id uint32, n int) int {
	for i := 0; n > 0 && len(b.buf) < DrainBytes; i++ {
		if i%drainFetch == 0 {
			s.fetched += s.Slab.PrefetchDirty(id, drainFetch)
		}
		r := s.Slab.PopDirty(id)
		if r == 0 {
			break
		}
		e := Entry(s.Slab.At(r))
		if n--; e.Kind() == kindBundle {
			s.encodeBundle(b, e)
			continue
		}
		e.set(flagStored)
		s.encode(b, e)
		if e.Kind() == kindAllocations {
			n = s.drainBlocks(b, e, r, n)
		}
	}
	return n
}

// shrink frees the memory that a burst of changes took.
func (l *changeLog) shrink() {
	if len(l.pages) == 0 {
		l.pages = nil
	}
	if len(l.removed) == 0 {
		l.removed = nil
	}
}
