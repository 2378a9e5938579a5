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
