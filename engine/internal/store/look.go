package store

import (
	"github.com/weir-project/weir/engine/internal/arena"
	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/unitlog"
)

// A look must see a limiter with the units that ended holds give back, and must not change the
// limiter. So it gives the units back to a copy.

// copyForRead gives a look a copy of a limiter that it may change. EndLook frees the copy.
func (s *Store) copyForRead(c *Cell) {
	copied := append(Entry(nil), c.Entry.bytes()...)
	if HasLog(c.Entry.Kind()) {
		from, to := unitlog.Read(c.Entry.State()), unitlog.Log{}
		for r := range from.All(&s.Slab) {
			to.Append(&s.Slab, r.AtNs, r.Units)
		}
		to.Write(copied.State())
		s.copies = append(s.copies, copied)
	}
	c.Entry = copied
}

// freeCopies frees the blocks of the copies.
func (s *Store) freeCopies() {
	for _, e := range s.copies {
		s.freeState(e)
	}
	s.copies = s.copies[:0]
}

// EachView calls visit with the entry of a slot, or with each limiter of a bundle, as a look sees it, and whether it
// is live. The entry is valid until visit returns.
func (s *Store) EachView(r arena.Ref, visit func(e Entry, live bool)) {
	e := Entry(s.Slab.At(r))
	if e.Kind() != kindBundle {
		s.view(e, visit)
		return
	}
	for m := range e.members() {
		s.view(s.unfold(e, m), visit)
	}
}

// view calls visit with an entry as a look sees it.
func (s *Store) view(e Entry, visit func(e Entry, live bool)) {
	c := Cell{Entry: e, Live: !s.idle(e)}
	if SpaceOf(e.Kind()) == Limiters && (s.lags() || c.Live && s.HasAllocations()) {
		c.Hash, c.Key = s.hashKey(e.Key()), e.Key()
		s.UpToDate(&c)
	}
	if c.Entry == nil { // it starts empty
		c.Entry = e
	}
	visit(c.Entry, c.Live)
}

// BeginLook begins a look: until EndLook the store has the given time, if that is later than its own.
func (s *Store) BeginLook(nowNs, offsetNs int64) {
	s.Looking, s.resumeNs, s.resumeOffsetNs = true, s.NowNs, s.OffsetNs
	s.NowNs, s.OffsetNs = max(s.NowNs, nowNs), offsetNs
}

// EndLook ends the look that BeginLook began.
func (s *Store) EndLook() {
	s.freeCopies()
	s.returnBorrowed()
	s.Looking, s.Brief, s.Skipped = false, false, false
	s.NowNs, s.OffsetNs = s.resumeNs, s.resumeOffsetNs
}

// BeginAhead moves the store to a later time within an operation or a look, until EndAhead. It does nothing if the
// store is ahead already.
func (s *Store) BeginAhead(atNs int64) {
	if s.ahead {
		return
	}
	s.ahead, s.aheadLooking, s.aheadNs = true, s.Looking, s.NowNs
	s.Looking, s.NowNs = true, max(s.NowNs, atNs)
}

// EndAhead ends what BeginAhead began. It does nothing if the store is not ahead.
func (s *Store) EndAhead() {
	if !s.ahead {
		return
	}
	if !s.aheadLooking {
		s.freeCopies()
		s.returnBorrowed()
	}
	s.ahead, s.Looking, s.NowNs = false, s.aheadLooking, s.aheadNs
}

// SpanMs returns the time from now until an instant in milliseconds, rounded up, or -1 for Never.
func (s *Store) SpanMs(atNs int64) int64 {
	if atNs == arith.Never {
		return -1
	}
	return arith.NsToMs(max(atNs-s.NowNs, 0))
}
