package commands

import (
	"slices"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/engine/hashslot"
	"github.com/weir-project/weir/limiter"
)

// readGroups returns the numbers of the groups that a read depends on. some is false for a read that depends on all
// groups.
func (s *Session) readGroups(t *limiter.Topology, cmd *command, args [][]byte) (groups []int, some bool) {
	add := func(g int) {
		if !slices.Contains(groups, g) {
			groups = append(groups, g)
		}
	}
	switch {
	case cmd.readsSlot:
		slot, err := slotArg(args[2])
		if err != nil {
			return nil, false
		}
		add(hashslot.Group(slot, len(t.Groups)))
		return groups, true
	case cmd.readsOwn && s.srv.Redirects:
		for g := range t.Groups {
			if t.Groups[g].Leader == t.Self {
				add(g)
			}
		}
		return groups, true
	case cmd.readsBase:
		add(base(t))
		return groups, true
	case !cmd.keyed:
		return nil, false
	}
	keys, _, err := keysIn(s.srv, args)
	if err != nil {
		return nil, false
	}
	for _, key := range keys {
		if isBlacklist(s.srv, key) {
			add(base(t))
		}
		add(groupOfName(t, key))
		if p, own := s.srv.Limiter.Policies().OfLayout(key); p != nil {
			add(groupOfName(t, own))
		}
	}
	return groups, true
}

func groupOfName(t *limiter.Topology, name []byte) int {
	return hashslot.Group(engine.SlotOf(name), len(t.Groups))
}

// base returns the number of the group that a node reads policies and blocks everywhere from: the first group that has
// not ended on the node.
func base(t *limiter.Topology) int {
	return max(0, slices.IndexFunc(t.Groups, func(g limiter.Group) bool { return g.Ended == "" }))
}

// own returns a function for the keys that KEYS and SCAN show, or nil for all keys. A node that redirects clients
// shows the keys of the groups that it leads, because a cluster client asks every primary and joins the answers.
func own(srv *Shared) func(key []byte) bool {
	if !srv.Redirects || srv.Groups() == 1 {
		return nil
	}
	t := srv.Replica.Topology()
	return func(key []byte) bool { return t.GroupOf(engine.SlotOf(key)).Leader == t.Self }
}

// runSize is DBSIZE. It counts the keys that SCAN shows.
func runSize(s *Session, _ [][]byte) { s.Int(keysShown(s.srv) + int64(oneIf(shownSet(s.srv) != nil))) }

// keysShown returns how many keys of limiters SCAN shows.
func keysShown(srv *Shared) (n int64) {
	by, ok := srv.Replica.(limiter.GroupReader)
	if !ok || own(srv) == nil {
		return srv.Limiter.Len()
	}
	t := srv.Replica.Topology()
	for _, g := range t.Groups {
		if g.Leader == t.Self {
			n += by.LenOf(g.Slots.First)
		}
	}
	return n
}
