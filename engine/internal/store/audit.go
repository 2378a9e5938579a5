package store

import (
	"fmt"

	"github.com/weir-project/weir/engine/internal/arena"
)

// Audit checks that index, wheel, counters and limit table of a store agree, and returns the first contradiction.
// Only tests call it, because it visits every entry.
func (s *Store) Audit() error {
	users, kinds, linked := map[uint32]uint32{}, [NumKinds]int64{}, map[arena.Ref]bool{}
	s.Wheel.each(&s.Slab, func(r arena.Ref) { linked[r] = true })
	for g := range s.Index.Segments() {
		var err error
		g.Each(func(r arena.Ref) {
			if !linked[r] {
				err = fmt.Errorf("entry %q is not in the wheel", Entry(s.Slab.At(r)).Key())
			}
			delete(linked, r)
			s.EachCell(r, func(c *Cell) {
				e := c.Entry
				users[e.Limit()]++
				kinds[e.Kind()]++
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
	case kinds != s.Counts.Entries:
		return fmt.Errorf("counted %v entries by kind, found %v", s.Counts.Entries, kinds)
	}
	return s.Limits.audit(users)
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
