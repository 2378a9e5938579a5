package store

import (
	"math/bits"

	"github.com/weir-project/weir/engine/internal/arena"
	"github.com/weir-project/weir/engine/internal/arith"
)

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
	heads [wheelLevels][wheelSlots]arena.Ref
	inUse [wheelLevels]uint64 // which heads are not zero
	never arena.Ref           // entries that do not become idle by themselves
}

const (
	tickBits    = 24 // 16.8 ms: how late an idle entry may be noticed
	digitBits   = 6
	wheelSlots  = 1 << digitBits
	wheelLevels = 7 // 42 bits of ticks: all of 63 bits of nanoseconds
)

// wheelSlot is a slot of the wheel.
type wheelSlot struct{ level, slot int }

var neverSlot = wheelSlot{level: wheelLevels}

// slotFor returns where an entry that becomes idle at idleNs belongs.
func (w *wheel) slotFor(idleNs int64) wheelSlot {
	if idleNs == arith.Never {
		return neverSlot
	}
	tick := max(idleNs>>tickBits, w.tick)
	level := max(bits.Len64(uint64(tick^w.tick))-1, 0) / digitBits
	return wheelSlot{level, int(tick>>(level*digitBits)) % wheelSlots}
}

func (w *wheel) head(p wheelSlot) *arena.Ref {
	if p == neverSlot {
		return &w.never
	}
	return &w.heads[p.level][p.slot]
}

// startTick is the first tick of a slot that has not passed.
func (w *wheel) startTick(p wheelSlot) int64 {
	shift := p.level * digitBits
	return w.tick>>shift>>digitBits<<digitBits<<shift | int64(p.slot)<<shift
}

// dueAt is when a slot has work: a slot of single ticks once it is over, so that
// what stands in it is idle; a longer one as soon as it begins.
func (w *wheel) dueAt(p wheelSlot) int64 {
	start := w.startTick(p)
	if p.level == 0 {
		start++
	}
	return start << tickBits
}

// link puts an unlinked entry where it belongs.
func (w *wheel) link(s *arena.Slab, r arena.Ref, idleNs int64) {
	p := w.slotFor(idleNs)
	head := w.head(p)
	e := Entry(s.At(r))
	e.setNext(*head)
	e.setPrev(p.mark())
	if *head != 0 {
		Entry(s.At(*head)).setPrev(r)
	}
	*head = r
	if p != neverSlot {
		w.inUse[p.level] |= 1 << p.slot
		w.dueNs = min(w.dueNs, w.dueAt(p))
	}
}

// unlink takes an entry out.
func (w *wheel) unlink(s *arena.Slab, r arena.Ref) {
	e := Entry(s.At(r))
	next, prev := e.next(), e.prev()
	if next != 0 {
		Entry(s.At(next)).setPrev(prev)
	}
	if prev < headMark {
		Entry(s.At(prev)).setNext(next)
		return
	}
	p := slotMarked(prev)
	*w.head(p) = next
	if next == 0 && p != neverSlot {
		w.inUse[p.level] &^= 1 << p.slot
	}
}

// headMark is set in the prev link of the first entry of a slot, beside the
// number of the slot. A slab's refs stay below it.
const headMark = 1 << 31

func (p wheelSlot) mark() arena.Ref { return headMark | uint32(p.level*wheelSlots+p.slot) }

func slotMarked(mark arena.Ref) wheelSlot {
	n := int(mark &^ headMark)
	return wheelSlot{n / wheelSlots, n % wheelSlots}
}

// earliest returns the slot that is due first, and when.
func (w *wheel) earliest() (p wheelSlot, dueNs int64) {
	p, dueNs = neverSlot, arith.Never
	for level := range wheelLevels {
		digit := int(w.tick>>(level*digitBits)) % wheelSlots
		ahead := w.inUse[level] >> digit
		if ahead == 0 {
			continue
		}
		q := wheelSlot{level, digit + bits.TrailingZeros64(ahead)}
		if due := w.dueAt(q); due < dueNs {
			p, dueNs = q, due
		}
	}
	return p, dueNs
}

// newWheel returns an empty wheel.
func newWheel() wheel { return wheel{dueNs: arith.Never} }

// Due reports whether a step may have work at a time.
func (w *wheel) Due(nowNs int64) bool { return nowNs >= w.dueNs }

// advance goes on to the first slot that is due at a time and returns its first entry;
// false when none is.
func (w *wheel) advance(nowNs int64) (first arena.Ref, ok bool) {
	p, dueNs := w.earliest()
	if dueNs > nowNs {
		w.tick, w.dueNs = max(w.tick, nowNs>>tickBits), dueNs
		return 0, false
	}
	w.tick = max(w.tick, w.startTick(p))
	return *w.head(p), true
}

// atTick is the first of the entries that become idle within the tick of a time.
func (w *wheel) atTick(nowNs int64) arena.Ref { return w.heads[0][nowNs>>tickBits%wheelSlots] }

// moved makes the neighbours of an entry that was moved mean its new slot.
func (w *wheel) moved(s *arena.Slab, to arena.Ref) {
	e := Entry(s.At(to))
	if next := e.next(); next != 0 {
		Entry(s.At(next)).setPrev(to)
	}
	if prev := e.prev(); prev < headMark {
		Entry(s.At(prev)).setNext(to)
	} else {
		*w.head(slotMarked(prev)) = to
	}
}
