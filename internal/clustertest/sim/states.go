package sim

// entry is an entry of the log of a group.
type entry struct {
	group int
	index uint64
}

// states are the hashes of nodes, by the last applied entry of a group.
type states map[entry]struct {
	hash uint64
	of   string
}

// compare compares the states of all nodes with each other, and with earlier ones at the same entry.
func (s *Simulation) compare() {
	s.atRest()
	for _, h := range s.machines() {
		if p := h.running(); p != nil {
			s.expectGroups(p)
			if s.config.shared {
				s.compareShared(p)
			}
			for i, g := range p.group {
				s.compareOne(h, i, g)
			}
		}
	}
}

// expectGroups checks that no group of a process has ended, unless the removal of its node was requested.
func (s *Simulation) expectGroups(p *process) {
	for i, g := range p.node.Topology().Groups {
		if g.Ended != "" && !p.host.leaving() && !p.host.wasLost() {
			s.violation("group %d of %s has ended: %s", i, p.host.id, g.Ended)
		}
	}
}

func (s *Simulation) compareOne(h *host, group int, g replica) {
	index, hash := g.Digest()
	at := entry{group, index}
	was, ok := s.seen[at]
	if !ok {
		was.hash, was.of = hash, h.id
		s.seen[at] = was
		return
	}
	s.report.Comparison++
	if was.hash != hash {
		s.violation("at entry %d of group %d the state of %s is not that of %s", index, group, h.id, was.of)
	}
}

// agree waits until all members have applied the same entries.
func (s *Simulation) agree() {
	same := s.within(maxRecovery, func() bool {
		s.compare()
		return s.sameIndexes()
	})
	if !same {
		s.violation("the members do not catch up")
	}
}

// sameIndexes reports whether the members of every group have applied the same entries.
func (s *Simulation) sameIndexes() bool {
	for i := range s.groups() {
		members := s.membersOf(i)
		for _, p := range members {
			index, _ := p.group[i].Digest()
			if first, _ := members[0].group[i].Digest(); index != first {
				return false
			}
		}
		if len(members) == 0 {
			return false
		}
	}
	return true
}
