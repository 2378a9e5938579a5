package commands

import (
	"slices"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/limits"
)

// reading is the part of a command that reads limiters. run has no other way to them than the view, which covers the
// groups of the scope.
type reading struct {
	run func(s *Session, v limiter.View, args [][]byte)
	// scope adds the groups that the command depends on. It returns false if it depends on all groups. nil: it does.
	scope func(s *Session, args [][]byte, to *scope) bool
}

// scope collects the numbers of Raft groups.
type scope struct {
	*limiter.Topology
	groups []int
}

func (c *scope) add(g int) {
	if !slices.Contains(c.groups, g) {
		c.groups = append(c.groups, g)
	}
}

// addSlot adds the group of a slot.
func (c *scope) addSlot(slot uint16) { c.add(c.NumberOf(slot)) }

// addBase adds the group that a node reads policies and blocks everywhere from.
func (c *scope) addBase() { c.add(c.Base()) }

// wholeState reads the keys of all groups.
func wholeState(run func(*Session, limiter.View, [][]byte)) reading { return reading{run: run} }

// baseState reads policies or blocks everywhere, which every group has.
func baseState(run func(*Session, limiter.View, [][]byte)) reading {
	return reading{run, func(_ *Session, _ [][]byte, to *scope) bool {
		to.addBase()
		return true
	}}
}

// slotState reads the keys in the slot that is the third argument.
func slotState(run func(*Session, limiter.View, [][]byte)) reading {
	return reading{run, func(_ *Session, args [][]byte, to *scope) bool {
		slot, err := slotArg(args[2])
		if err == nil {
			to.addSlot(slot)
		}
		return err == nil
	}}
}

// ownState reads the keys that KEYS and SCAN show: of the groups that this node leads if it redirects clients and leads
// any, otherwise of all groups. The set of blocked addresses may be one of them.
func ownState(run func(*Session, limiter.View, [][]byte)) reading {
	return reading{run, func(s *Session, _ [][]byte, to *scope) bool {
		if !s.redirects() || to.Led() == 0 {
			return false
		}
		for g := range to.Groups {
			if to.Groups[g].Leader == to.Self {
				to.add(g)
			}
		}
		if set := s.blacklist(); set != "" && to.GroupOf(engine.SlotOf([]byte(set))).Leader == to.Self {
			to.addBase()
		}
		return true
	}}
}

// keyState reads the keys among the arguments.
func keyState(run func(*Session, limiter.View, [][]byte)) reading {
	return reading{run, func(s *Session, args [][]byte, to *scope) bool {
		keys, _, err := keysIn(s.srv, args)
		for _, key := range keys {
			if s.isBlacklist(key) {
				to.addBase()
			}
			to.addSlot(engine.SlotOf(key))
			if p, own := s.srv.Here.Policies().OfLayout(key); p != nil {
				to.addSlot(engine.SlotOf(own))
			}
		}
		return err == nil
	}}
}

// explainState reads the keys of the command that the arguments contain, and the block of its address.
func explainState(run func(*Session, limiter.View, [][]byte)) reading {
	keys := keyState(run)
	return reading{run, func(s *Session, args [][]byte, to *scope) bool {
		if slices.ContainsFunc(args, func(word []byte) bool { return limits.Is(word, "FROM") }) {
			to.addBase()
		}
		return keys.scope(s, args, to)
	}}
}

// own returns a function for the keys that KEYS and SCAN show, or nil for all keys. A node that redirects clients
// shows the keys of the groups that it leads, because a cluster client asks every primary and joins the answers. A node
// that leads none shows all keys.
func own(s *Session) func(key []byte) bool {
	if !s.redirects() {
		return nil
	}
	t := s.srv.Replica.Topology()
	if t.Led() == 0 {
		return nil
	}
	return func(key []byte) bool { return t.GroupOf(engine.SlotOf(key)).Leader == t.Self }
}

// runSize is DBSIZE. It counts the keys that SCAN shows.
func runSize(s *Session, v limiter.View, _ [][]byte) {
	n := keysShown(s, int(s.database), func(int) int64 { return v.Len() })
	s.Int(n + int64(oneIf(shownSet(s, v, s.blacklist()) != nil)))
}

// keysShown returns how many keys of limiters in a database SCAN shows. all counts those of all groups.
func keysShown(s *Session, database int, all func(database int) int64) (n int64) {
	if own(s) == nil {
		return all(database)
	}
	t := s.srv.Replica.Topology()
	for _, g := range t.Groups {
		if g.Leader == t.Self {
			n += s.srv.Replica.LenOf(g.Slots.First, database)
		}
	}
	return n
}
