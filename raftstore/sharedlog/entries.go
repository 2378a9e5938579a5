package sharedlog

import "slices"

// entries maps the entries of a part to the positions of their records. The entries have consecutive indexes.
type entries struct {
	first uint64   // index of the first entry; 0: there is none
	at    []uint64 // positions by index, from first
	bytes int64    // about the size of all records; a removal takes its share of it
}

// last returns the index of the last entry, or 0.
func (e *entries) last() uint64 {
	if len(e.at) == 0 {
		return 0
	}
	return e.first + uint64(len(e.at)) - 1
}

// position returns the position of an entry.
func (e *entries) position(index uint64) (uint64, bool) {
	if len(e.at) == 0 || index < e.first || index > e.last() {
		return 0, false
	}
	return e.at[index-e.first], true
}

// put sets the position of an entry: of the next one, of any if there is none, or of one that was written again.
func (e *entries) put(index, position uint64, bytes int64) {
	if len(e.at) == 0 {
		e.first = index
	}
	if i := index - e.first; i < uint64(len(e.at)) {
		e.at[i] = position
		return
	}
	e.at = append(e.at, position)
	e.bytes += bytes
}

// cut removes the entries from an index on.
func (e *entries) cut(from uint64) {
	if len(e.at) > 0 && from <= e.last() {
		e.keep(0, int(max(from, e.first)-e.first))
	}
}

// raise removes the entries before an index.
func (e *entries) raise(low uint64) {
	if len(e.at) > 0 && low > e.first {
		e.keep(int(min(low-e.first, uint64(len(e.at)))), len(e.at))
	}
}

// keep keeps the entries of [from, to), and releases the memory of the others if that is worth it.
func (e *entries) keep(from, to int) {
	before := len(e.at)
	e.bytes = e.bytes * int64(to-from) / int64(before)
	e.at, e.first = e.at[from:to], e.first+uint64(from)
	if len(e.at) == 0 {
		*e = entries{}
	} else if len(e.at) < before/2 {
		e.at = slices.Clone(e.at)
	}
}

// oldest returns the lowest position, or none if there is no entry.
func (e *entries) oldest() uint64 {
	if len(e.at) == 0 {
		return none
	}
	return slices.Min(e.at)
}

// indexFrom returns the index from which on all entries are at a position or after it.
func (e *entries) indexFrom(position uint64) uint64 {
	for i := len(e.at); i > 0; i-- {
		if e.at[i-1] < position {
			return e.first + uint64(i)
		}
	}
	return e.first
}

// none is a position after all records.
const none = ^uint64(0)
