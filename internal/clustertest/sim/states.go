package sim

// states are the hashes of nodes, by the last applied entry.
type states map[uint64]struct {
	hash uint64
	of   string
}

// compare compares the states of all nodes with each other, and with earlier ones at the same entry.
func (s *Simulation) compare() (indexes []uint64) {
	s.atRest()
	for _, h := range s.machines() {
		p := h.running()
		if p == nil {
			continue
		}
		index, hash := p.node.Digest()
		indexes = append(indexes, index)
		was, ok := s.seen[index]
		if !ok {
			was.hash, was.of = hash, h.id
			s.seen[index] = was
			continue
		}
		s.report.Comparison++
		if was.hash != hash {
			s.violation("at entry %d the state of %s is not that of %s", index, h.id, was.of)
		}
	}
	return indexes
}

// agree waits until all members have applied the same entry.
func (s *Simulation) agree() {
	same := s.within(maxRecovery, func() bool {
		s.compare()
		return s.sameIndex()
	})
	if !same {
		s.violation("the members do not catch up")
	}
}

func (s *Simulation) sameIndex() bool {
	var first uint64
	members := s.members()
	for i, p := range members {
		index, _ := p.node.Digest()
		if i == 0 {
			first = index
		}
		if index != first {
			return false
		}
	}
	return len(members) > 0
}
