package store

import (
	"fmt"

	"github.com/weir-project/weir/engine/internal/arena"
	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/rule"
)

// Audit checks that index, wheel, counters and limit table of a store agree, and returns the first contradiction.
// Only tests call it, because it visits every entry.
func (s *Store) Audit() error {
	users, kinds, linked, bundles := map[uint32]uint32{}, [NumKinds]int64{}, map[arena.Ref]bool{}, 0
	var elsewhere [rule.Databases]int64
	s.Wheel.each(&s.Slab, func(r arena.Ref) { linked[r] = true })
	for g := range s.Index.Segments() {
		var err error
		g.Each(func(r arena.Ref) {
			if !linked[r] {
				err = fmt.Errorf("entry %q is not in the wheel", Entry(s.Slab.At(r)).Key())
			}
			delete(linked, r)
			if Entry(s.Slab.At(r)).Kind() == kindBundle {
				bundles++
			}
			if bad := s.auditSlot(r); bad != nil {
				err = bad
			}
			s.EachCell(r, func(c *Cell) {
				e := c.Entry
				users[e.Limit()]++
				kinds[e.Kind()]++
				if e.Kind() < KindToken && (c.Space == Limiters || !s.hasPartner(c)) {
					if database := rule.DatabaseOf(c.Key); database > 0 {
						elsewhere[database]++
					}
				}
				if IsBucket(e.Kind()) && stateLen(e) < LimitStateLen(s.Limits.At(e.Limit())) {
					err = fmt.Errorf("the state of entry %q is shorter than its limit needs", c.Key)
				}
				if again := (Cell{Hash: s.hashKey(c.Key), Key: c.Key, Space: c.Space}); !s.finds(&again, c) {
					err = fmt.Errorf("entry %q is not found by its name", c.Key)
				}
			})
		})
		if err != nil {
			return err
		}
	}
	switch {
	case len(linked) > 0:
		return fmt.Errorf("%d entries in the wheel are not in the index", len(linked))
	case bundles != s.bundles:
		return fmt.Errorf("counted %d bundles, found %d", s.bundles, bundles)
	case elsewhere != s.Counts.Elsewhere:
		return fmt.Errorf("counted %v keys of other databases, found %v", s.Counts.Elsewhere, elsewhere)
	case kinds != s.Counts.Entries:
		return fmt.Errorf("counted %v entries by kind, found %v", s.Counts.Entries, kinds)
	}
	return s.Limits.audit(users)
}

// auditSlot checks that a bundle has members and fits its slot, and that the wheel finds an entry when it becomes idle.
func (s *Store) auditSlot(r arena.Ref) error {
	e := Entry(s.Slab.At(r))
	if e.Kind() == kindBundle {
		present, all := e.memberBytes()
		if present == 0 || EntryLen(e.keyLen(), 1+all) > s.Slab.Len(r) {
			return fmt.Errorf("the bundle %q has members of %d bytes in a slot of %d", e.Key(), all, s.Slab.Len(r))
		}
	}
	first := r
	for e := Entry(s.Slab.At(r)); e.prev() < headMark; e = s.Slab.At(first) {
		first = e.prev()
	}
	idleNs := s.IdleAtNs(e)
	switch p := slotMarked(Entry(s.Slab.At(first)).prev()); {
	case p == neverSlot:
		if idleNs != arith.Never {
			return fmt.Errorf("entry %q becomes idle, and is among those that do not", e.Key())
		}
	case p == endedSlot:
		if e.Kind() != KindHold || !untold(e.State()) || holdEndsNs(e.State()) > s.NowNs {
			return fmt.Errorf("entry %q is among the holds whose end must be told", e.Key())
		}
	case s.Wheel.startTick(p) > max(idleNs>>tickBits, s.Wheel.tick):
		return fmt.Errorf("entry %q is in the wheel at a time after it becomes idle", e.Key())
	}
	return nil
}

// finds reports whether opening a cell finds the entry of another.
func (s *Store) finds(c, other *Cell) bool {
	s.Open(c)
	return c.Ref == other.Ref && c.member == other.member && &c.Entry[0] == &other.Entry[0]
}

// each calls visit for all entries.
func (w *wheel) each(s *arena.Slab, visit func(arena.Ref)) {
	follow := func(r arena.Ref) {
		for ; r != 0; r = Entry(s.At(r)).next() {
			visit(r)
		}
	}
	for level := range w.heads {
		for _, r := range w.heads[level] {
			follow(r)
		}
	}
	follow(w.never)
	follow(w.ended)
}

// audit compares the reference count of each limit with the number of users found.
func (t *limitTable) audit(users map[uint32]uint32) error {
	for id := 1; id < len(t.slots); id++ {
		if t.slots[id].refs != users[uint32(id)] {
			return fmt.Errorf("limit %d has %d users, found %d", id, t.slots[id].refs, users[uint32(id)])
		}
	}
	return nil
}
