package unitlog

import "github.com/weir-project/weir/engine/internal/arena"

// Remove removes up to n units admitted at a time, at any position of the log.
func (l *Log) Remove(s *arena.Slab, atNs, n int64) {
	before := arena.Ref(0)
	for r := l.head; r != 0 && n > 0; {
		b := block(s.At(r))
		next := b.next()
		if b.firstNs() > atNs {
			break
		}
		if next == 0 || block(s.At(next)).firstNs() >= atNs {
			gone := b.remove(atNs, n)
			l.Units -= gone
			l.ForgetKept()
			n -= gone
		}
		if b.start() == b.end() {
			l.unlink(s, r, before)
		} else {
			before = r
		}
		r = next
	}
	if l.tail != 0 {
		for r := range block(s.At(l.tail)).records() {
			l.LastNs = r.AtNs
		}
	}
}

// unlink frees an empty block; before is the block that links to it, or 0.
func (l *Log) unlink(s *arena.Slab, r, before arena.Ref) {
	next := block(s.At(r)).next()
	if before == 0 {
		l.head = next
	} else {
		block(s.At(before)).setNext(next)
	}
	if l.tail == r {
		l.tail = before
	}
	s.Free(r)
	if l.head == 0 {
		*l = Log{}
	}
}

// remove removes up to n units admitted at a time and returns how many it removed.
func (b block) remove(atNs, n int64) (gone int64) {
	for n > gone {
		found, ok := b.recordAt(atNs)
		if !ok {
			break
		}
		units := min(found.Units, n-gone)
		b.shorten(found, units)
		gone += units
	}
	return gone
}

// recordAt finds the first record of a time.
func (b block) recordAt(atNs int64) (found Record, ok bool) {
	for r := range b.records() {
		if r.AtNs == atNs {
			return r, true
		}
	}
	return Record{}, false
}

// shorten removes units from a record, and removes the record if it has no units left. The time difference of a
// removed record is added to the next record. The written bytes are never longer than the replaced bytes: they have
// fewer units, or one record instead of two.
func (b block) shorten(r Record, units int64) {
	b.setUnits(b.units() - units)
	since, _, _ := b.record(r.begin)
	if left := r.Units - units; left > 0 {
		b.replace(r.begin, r.end, since, left)
		return
	}
	if r.end == b.end() {
		b.setEnd(r.begin)
		return
	}
	gap, follows, end := b.record(r.end)
	if r.begin == b.start() {
		b.setStart(r.end)
		b.setFirst(r.AtNs + gap)
		return
	}
	b.replace(r.begin, end, since+gap, follows)
}

// replace writes a record in place of the bytes between two offsets, and moves the bytes behind them.
func (b block) replace(from, to int, sinceNs, units int64) {
	var rec [maxRecordLen]byte
	n := putRecord(rec[:], sinceNs, units)
	end := from + copy(b[from:], rec[:n])
	b.setEnd(end + copy(b[end:], b[to:b.end()]))
}
