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
			e := Entry(s.Slab.At(r))
			users[e.Limit()]++
			kinds[e.Kind()]++
			switch {
			case !linked[r]:
				err = fmt.Errorf("entry %q is not in the wheel", e.Key())
			case IsBucket(e.Kind()) && stateLen(e) < LimitStateLen(s.Limits.At(e.Limit())):
				err = fmt.Errorf("the state of entry %q is shorter than its limit needs", e.Key())
			}
			delete(linked, r)
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
