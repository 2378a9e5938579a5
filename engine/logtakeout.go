package engine

// takeOut forgets up to n units admitted at a time, wherever in the log they stand.
func (l *unitLog) takeOut(s *slab, atNs, n int64) {
	before := ref(0)
	for r := l.head; r != 0 && n > 0; {
		b := logBlock(s.at(r))
		next := b.next()
		if b.firstNs() > atNs {
			break
		}
		if next == 0 || logBlock(s.at(next)).firstNs() >= atNs {
			gone := b.takeOut(atNs, n)
			l.units -= gone
			l.forgetKept()
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
		for r := range logBlock(s.at(l.tail)).records() {
			l.lastNs = r.atNs
		}
	}
}

// unlink frees an empty block; before is the block that links to it, or 0.
func (l *unitLog) unlink(s *slab, r, before ref) {
	next := logBlock(s.at(r)).next()
	if before == 0 {
		l.head = next
	} else {
		logBlock(s.at(before)).setNext(next)
	}
	if l.tail == r {
		l.tail = before
	}
	s.free(r)
	if l.head == 0 {
		*l = unitLog{}
	}
}

// takeOut forgets up to n units admitted at a time and returns how many it did.
func (b logBlock) takeOut(atNs, n int64) (gone int64) {
	for n > gone {
		found, ok := b.recordAt(atNs)
		if !ok {
			break
		}
		units := min(found.units, n-gone)
		b.shorten(found, units)
		gone += units
	}
	return gone
}

// recordAt finds the first record of a time.
func (b logBlock) recordAt(atNs int64) (found logRecord, ok bool) {
	for r := range b.records() {
		if r.atNs == atNs {
			return r, true
		}
	}
	return logRecord{}, false
}

// shorten takes units from a record, and the record out when it has no more. What is
// written is never longer than what it replaces: fewer units, or one record for two.
func (b logBlock) shorten(r logRecord, units int64) {
	b.setUnits(b.units() - units)
	since, _, _ := b.record(r.begin)
	if left := r.units - units; left > 0 {
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
		b.setFirst(r.atNs + gap)
		return
	}
	b.replace(r.begin, end, since+gap, follows)
}

// replace writes a record over the bytes from one place to another.
func (b logBlock) replace(from, to int, sinceNs, units int64) {
	var rec [maxRecordLen]byte
	n := putRecord(rec[:], sinceNs, units)
	end := from + copy(b[from:], rec[:n])
	b.setEnd(end + copy(b[end:], b[to:b.end()]))
}
