package store

import (
	"math/bits"

	"github.com/weir-project/weir/engine/internal/arena"
	"github.com/weir-project/weir/engine/internal/arith"
)

// wheel orders the entries of a shard by the time at which they become idle. It is a hierarchical timing wheel
// (Varghese and Lauck, 1987). An entry is in the slot of the time at which it becomes idle, or in an earlier slot.
// Taking units only moves that time later. So an entry in use stays in its slot until the slot is due, and then
// moves to the slot of its current time. If the time may have moved earlier, the caller links the entry again.
//
// Time is counted in ticks. An entry for tick t is at the level of the highest base-64 digit in which t differs
// from the wheel's own tick, in the slot of that digit.
type wheel struct {
	tick  int64 // no entry is in a slot of an earlier tick
	DueNs int64 // no slot is due before this time, and a step has no work
	heads [wheelLevels][wheelSlots]arena.Ref
	inUse [wheelLevels]uint64 // which heads are not zero
	never arena.Ref           // entries that do not become idle by themselves
	ended arena.Ref           // holds that have ended, and whose end must be told
}

const (
	tickBits    = 24 // 16.8 ms: how late an idle entry may be noticed
	digitBits   = 6
	wheelSlots  = 1 << digitBits
	wheelLevels = 7 // 42 bits of ticks: all of 63 bits of nanoseconds
)

// wheelSlot is a slot of the wheel.
type wheelSlot struct{ level, slot int }

var neverSlot, endedSlot = wheelSlot{level: wheelLevels}, wheelSlot{level: wheelLevels, slot: 1}

// timed reports whether the slot belongs to a time.
func (p wheelSlot) timed() bool { return p.level < wheelLevels }

// slotFor returns the slot of an entry that becomes idle at idleNs, or the current slot if that has passed.
func (w *wheel) slotFor(idleNs int64) wheelSlot {
	if idleNs == arith.Never {
		return neverSlot
	}
	tick := max(idleNs>>tickBits, w.tick)
	level := max(bits.Len64(uint64(tick^w.tick))-1, 0) / digitBits
	return wheelSlot{level, int(tick>>(level*digitBits)) % wheelSlots}
}

func (w *wheel) head(p wheelSlot) *arena.Ref {
	switch p {
	case neverSlot:
		return &w.never
	case endedSlot:
		return &w.ended
	}
	return &w.heads[p.level][p.slot]
}

// startTick returns the first tick of a slot, in the rotation of its level that contains the wheel's own tick.
func (w *wheel) startTick(p wheelSlot) int64 {
	shift := p.level * digitBits
	return w.tick>>shift>>digitBits<<digitBits<<shift | int64(p.slot)<<shift
}

// dueAt returns when a slot is due. A slot of a single tick is due once it is over, so that its entries are
// idle. A longer slot is due as soon as it begins.
func (w *wheel) dueAt(p wheelSlot) int64 {
	start := w.startTick(p)
	if p.level == 0 {
		start++
	}
	return start << tickBits
}

// link inserts an unlinked entry into its slot.
func (w *wheel) link(s *arena.Slab, r arena.Ref, idleNs int64) { w.linkIn(s, r, w.slotFor(idleNs)) }

// linkIn inserts an unlinked entry into a slot.
func (w *wheel) linkIn(s *arena.Slab, r arena.Ref, p wheelSlot) {
	head := w.head(p)
	e := Entry(s.At(r))
	e.setNext(*head)
	e.setPrev(p.mark())
	if *head != 0 {
		Entry(s.At(*head)).setPrev(r)
	}
	*head = r
	if p.timed() {
		w.inUse[p.level] |= 1 << p.slot
		w.DueNs = min(w.DueNs, w.dueAt(p))
	}
}

// unlink removes an entry from its slot.
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
	if next == 0 && p.timed() {
		w.inUse[p.level] &^= 1 << p.slot
	}
}

// headMark is set in the prev link of the first entry of a slot. The other bits of this link are then the number
// of the slot. The refs of a slab are below headMark.
const headMark = 1 << 31

func (p wheelSlot) mark() arena.Ref { return headMark | uint32(p.level*wheelSlots+p.slot) }

func slotMarked(mark arena.Ref) wheelSlot {
	n := int(mark &^ headMark)
	return wheelSlot{n / wheelSlots, n % wheelSlots}
}

// earliest returns the slot that is due first, and the time at which it is due.
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

// BeginLoad moves the wheel of an empty store to the store's time. In a wheel at time 0, Collect would move each loaded
// entry through all levels. The wheel stops a tick before the time of Collect, so that Collect finds entries at once
// that ended before the load.
func (s *Store) BeginLoad() {
	if s.Wheel.DueNs == arith.Never {
		s.Wheel.advance(s.NowNs - IdleGraceNs - 1<<tickBits)
	}
}

// newWheel returns an empty wheel.
func newWheel() wheel { return wheel{DueNs: arith.Never} }

// advance moves on to the first slot that is due at a time and returns its first entry, or false if no slot is
// due.
func (w *wheel) advance(nowNs int64) (first arena.Ref, ok bool) {
	p, dueNs := w.earliest()
	if dueNs > nowNs {
		w.tick, w.DueNs = max(w.tick, nowNs>>tickBits), dueNs
		return 0, false
	}
	w.tick = max(w.tick, w.startTick(p))
	return *w.head(p), true
}

// atTick returns the first of the entries that become idle within the tick of a time.
func (w *wheel) atTick(nowNs int64) arena.Ref { return w.heads[0][nowNs>>tickBits%wheelSlots] }

// moved makes the neighbours of an entry refer to its new slab slot.
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
