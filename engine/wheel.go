package engine

import "math/bits"

// wheel orders the entries of a shard by the time they become idle: a
// hierarchical timing wheel (Varghese and Lauck, 1987). An entry stands in the
// slot of a time at or before the one it becomes idle at: using a limiter only
// moves that time later, so an entry in use is not touched until its slot comes
// up and it is put where it belongs by then.
//
// Time is counted in ticks. An entry for tick t stands at the level of the
// highest base-64 digit in which t differs from the wheel's own tick, in the slot
// of that digit.
type wheel struct {
	tick  int64 // nothing stands before it
	dueNs int64 // no step has work before it
	heads [wheelLevels][wheelSlots]ref
	inUse [wheelLevels]uint64 // which heads are not zero
	never ref                 // entries that do not become idle by themselves
}

const (
	tickBits    = 24 // 16.8 ms: how late an idle entry may be noticed
	digitBits   = 6
	wheelSlots  = 1 << digitBits
	wheelLevels = 7 // 42 bits of ticks: all of 63 bits of nanoseconds
)

// place is a slot of the wheel.
type place struct{ level, slot int }

var neverPlace = place{level: wheelLevels}

// placeOf returns where an entry that becomes idle at idleNs belongs.
func (w *wheel) placeOf(idleNs int64) place {
	if idleNs == Never {
		return neverPlace
	}
	tick := max(idleNs>>tickBits, w.tick)
	level := max(bits.Len64(uint64(tick^w.tick))-1, 0) / digitBits
	return place{level, int(tick>>(level*digitBits)) % wheelSlots}
}

func (w *wheel) head(p place) *ref {
	if p == neverPlace {
		return &w.never
	}
	return &w.heads[p.level][p.slot]
}

// startTick is the first tick of a slot that has not passed.
func (w *wheel) startTick(p place) int64 {
	shift := p.level * digitBits
	return w.tick>>shift>>digitBits<<digitBits<<shift | int64(p.slot)<<shift
}

// dueAt is when a slot has work: a slot of single ticks once it is over, so that
// what stands in it is idle; a longer one as soon as it begins.
func (w *wheel) dueAt(p place) int64 {
	start := w.startTick(p)
	if p.level == 0 {
		start++
	}
	return start << tickBits
}

// link puts an unlinked entry where it belongs.
func (w *wheel) link(s *slab, r ref, idleNs int64) {
	p := w.placeOf(idleNs)
	head := w.head(p)
	e := entry(s.at(r))
	e.setNext(*head)
	e.setPrev(p.mark())
	if *head != 0 {
		entry(s.at(*head)).setPrev(r)
	}
	*head = r
	if p != neverPlace {
		w.inUse[p.level] |= 1 << p.slot
		w.dueNs = min(w.dueNs, w.dueAt(p))
	}
}

// unlink takes an entry out.
func (w *wheel) unlink(s *slab, r ref) {
	e := entry(s.at(r))
	next, prev := e.next(), e.prev()
	if next != 0 {
		entry(s.at(next)).setPrev(prev)
	}
	if prev < headMark {
		entry(s.at(prev)).setNext(next)
		return
	}
	p := placeMarked(prev)
	*w.head(p) = next
	if next == 0 && p != neverPlace {
		w.inUse[p.level] &^= 1 << p.slot
	}
}

// headMark is set in the prev link of the first entry of a slot, beside the
// number of the slot. A slab's refs stay below it.
const headMark = 1 << 31

func (p place) mark() ref { return headMark | uint32(p.level*wheelSlots+p.slot) }

func placeMarked(mark ref) place {
	n := int(mark &^ headMark)
	return place{n / wheelSlots, n % wheelSlots}
}

// earliest returns the slot that is due first, and when.
func (w *wheel) earliest() (p place, dueNs int64) {
	p, dueNs = neverPlace, Never
	for level := range wheelLevels {
		digit := int(w.tick>>(level*digitBits)) % wheelSlots
		ahead := w.inUse[level] >> digit
		if ahead == 0 {
			continue
		}
		q := place{level, digit + bits.TrailingZeros64(ahead)}
		if due := w.dueAt(q); due < dueNs {
			p, dueNs = q, due
		}
	}
	return p, dueNs
}
