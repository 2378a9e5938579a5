package store

import (
	"slices"

	"github.com/weir-project/weir/engine/internal/arena"
	"github.com/weir-project/weir/engine/internal/rule"
	"github.com/weir-project/weir/engine/internal/unitlog"
)

// A limiter of a policy may lag behind the definitions of its policy (Store.catchUp). The functions of this file change
// such a limiter for the caller that brings it up to date. Within a look they change a copy.

// Vanish removes a limiter, which starts empty under its present definition. Within a look, the cell becomes absent.
func (s *Store) Vanish(c *Cell) {
	if !s.Looking {
		s.Drop(c)
		return
	}
	c.Ref, c.Entry, c.Live = 0, nil, false
}

// EndAllocations gives the units of holds that have ended at a time back to a limiter, whose limit changes then. The
// other allocations become void.
func (s *Store) EndAllocations(c *Cell, atNs int64) {
	k := s.OpenAllocations(c)
	if k.Ref == 0 || k.Entry.Limit() != c.Entry.Limit() {
		return
	}
	if s.Looking {
		s.copyForRead(c)
	}
	s.releaseEnded(c.Entry, s.endedOf(k.Entry, atNs))
}

// Renew makes l the limit of a limiter, before its new state is written. It asks for no memory, because every access
// must see the limiter under this limit; an entry grows by at most four bytes. If keep, the allocations stay valid.
func (s *Store) Renew(c *Cell, l *rule.Limit, keep bool) {
	length := LimitStateLen(l)
	if s.Looking {
		if keep {
			c.kept = c.Entry.Limit()
		}
		s.copyForRead(c)
		if e := c.Entry; length > stateLen(e) {
			c.Entry = append(e[:len(e)-stateLen(e)], make([]byte, length)...)
			c.Entry.set(flagLong)
		}
		id := s.Limits.acquire(l)
		s.borrowed = append(s.borrowed, id)
		c.Entry.setLimit(id)
		return
	}
	if !s.fitsState(c, length) {
		s.replace(c, length)
	}
	if k := s.OpenAllocations(c); keep && k.Ref != 0 && k.Entry.Limit() == c.Entry.Limit() {
		s.SetLimit(k.Entry, l)
		s.Changed(k.Ref)
	}
	s.SetLimit(c.Entry, l)
}

// CutLog removes the units of a log up to a time.
func (s *Store) CutLog(e Entry, untilNs int64) {
	log := unitlog.Read(e.State())
	log.DropUntil(&s.Slab, untilNs)
	log.Write(e.State())
}

// Renewed ends a change of a limiter that Renew began.
func (s *Store) Renewed(c *Cell) {
	c.Live = !s.idle(c.Entry)
	if s.Looking {
		return
	}
	c.Relink = true
	s.Touched(c)
	c.fresh, c.Relink = false, false
	if !c.Live {
		s.Drop(c)
	}
}

// returnBorrowed releases the limits of copies.
func (s *Store) returnBorrowed() {
	for _, id := range s.borrowed {
		s.Limits.release(id)
	}
	s.borrowed = s.borrowed[:0]
}

// Names appends the names of all limiters of policies in a segment to a list.
func (s *Store) Names(g *Segment, names [][]byte) [][]byte {
	g.Each(func(r arena.Ref) { names = s.namesIn(r, names) })
	return names
}

func (s *Store) namesIn(r arena.Ref, names [][]byte) [][]byte {
	e := Entry(s.Slab.At(r))
	if SpaceOf(e.Kind()) != Limiters && e.Kind() != kindBundle || !rule.Reserved(e.Key()) {
		return names
	}
	s.EachCell(r, func(c *Cell) { names = append(names, slices.Clone(c.Key)) })
	return names
}

// catchUpSlot brings the limiters in a slot up to date, and reports whether the slot has changed or is gone. A limiter
// that is idle under the limit that it keeps may not be idle under the definition in force.
func (s *Store) catchUpSlot(r arena.Ref) (changed bool) {
	if !s.lags() {
		return false
	}
	for _, name := range s.namesIn(r, nil) {
		c := Cell{Hash: s.hashKey(name), Key: name}
		s.Open(&c)
		since := s.Limits.At(c.Entry.Limit()).Since
		s.catchUp(&c)
		changed = changed || c.Ref != r || s.Limits.At(c.Entry.Limit()).Since != since
	}
	return changed
}
