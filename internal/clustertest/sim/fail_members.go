package sim

import (
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// maxHosts bounds the machines of a run, including the removed ones.
const maxHosts = 9

// changeMembers adds a machine, or removes a member.
func (s *Simulation) changeMembers(kind string, hosts []*host, rng *rand.Rand) {
	members := staying(hosts)
	switch {
	case kind == "add node" && len(hosts) < maxHosts && len(members) <= s.config.Nodes:
		h := s.newHost()
		s.event("%s is added", h.id)
		h.start()
	case kind == "remove node" && s.canShrink(members):
		h := members[rng.IntN(len(members))]
		p := s.anyProcess(rng)
		if p == nil {
			return
		}
		h.leave()
		s.event("%s is told to remove %s", p.host.id, h.id)
		s.tasks.Go(func() { s.remove(p, h) })
	}
}

// staying returns the machines whose removal was not requested.
func staying(hosts []*host) []*host {
	return slices.DeleteFunc(slices.Clone(hosts), func(h *host) bool { return h.leaving() })
}

// canShrink reports whether the cluster may lose one of its members. With several groups a removal takes a while, and
// an operator finishes it before the next one. Two halves of removals could leave a group without a majority.
func (s *Simulation) canShrink(members []*host) bool {
	return len(members) > max(s.config.Nodes-1, 2) && !s.losing.Load() && (s.groups() == 1 || !s.shrinks())
}

// endsWithin bounds how long a node keeps a group after its removal. It may be cut off, or not run.
const endsWithin = 10 * time.Second

// removeGroup removes a member from one group, and a while later from all. A node that leaves the first group leaves
// the others by itself.
func (s *Simulation) removeGroup(hosts []*host, rng *rand.Rand) {
	members := staying(hosts)
	p := s.anyProcess(rng)
	if p == nil || !s.canShrink(members) {
		return
	}
	h, group := members[rng.IntN(len(members))], rng.IntN(s.groups())
	h.leave()
	s.event("%s is told to remove %s from group %d", p.host.id, h.id, group)
	s.tasks.Go(func() {
		err := p.node.RemoveFromGroup(h.id, group)
		s.event("removing %s from group %d: %v", h.id, group, err)
		for began := time.Now(); err == nil && group > 0 && time.Since(began) < endsWithin; time.Sleep(lookAgain) {
			if q := h.running(); q != nil && q.node.Topology().Groups[group].Ended != "" {
				s.onlyEnded(q, group)
				break
			}
		}
		s.remove(p, h)
	})
}

// onlyEnded checks that one group of a process has ended and no other.
func (s *Simulation) onlyEnded(p *process, group int) {
	t := p.node.Topology()
	s.event("group %d of %s has ended: %s", group, p.host.id, t.Groups[group].Ended)
	if t.Ended() != 1 {
		s.violation("%d groups of %s have ended, although it was removed from one", t.Ended(), p.host.id)
	}
	if _, ok := p.look(s.probes()[group]); ok {
		s.violation("%s answers for group %d, which has ended on it", p.host.id, group)
	}
}

// remove acts as an operator: it repeats the removal of a node that some of several groups refused.
func (s *Simulation) remove(p *process, h *host) {
	for range maxLooks {
		err := p.node.RemoveNode(h.id)
		s.event("removing %s: %v", h.id, err)
		if s.groups() == 1 || (err == nil || isUnknownNode(err)) && p.node.Topology().Member(h.id) == nil {
			return
		}
		time.Sleep(lookAgain)
		for p = nil; p == nil; time.Sleep(lookAgain) {
			p = s.anyProcess(rand.New(rand.NewPCG(s.config.Seed, uint64(s.elapsed()))))
		}
	}
}

// isUnknownNode reports whether a removal failed because the cluster has no such node. The error of a single group
// names the group first, and another group may still have the node.
func isUnknownNode(err error) bool { return strings.HasPrefix(err.Error(), "no node") }

// leave records that a machine's removal was requested. leaving requests it.
func (h *host) leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.removed = true
}

func (h *host) leaving() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.removed
}
