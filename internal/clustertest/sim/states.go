package sim

import (
	"fmt"

	"github.com/weir-project/weir/internal/clustertest/ledger"
)

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
	if index == 0 { // the node has no replica of the group
		return
	}
	last := ledger.Applied{Group: group, Index: index}
	if err := s.replicas.Add(ledger.Digest{Node: h.id, Last: last, Hash: fmt.Sprint(hash)}); err != nil {
		s.violation("%v", err)
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
