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
	members := slices.DeleteFunc(slices.Clone(hosts), func(h *host) bool { return h.leaving() })
	switch {
	case kind == "add node" && len(hosts) < maxHosts && len(members) <= s.config.Nodes:
		h := s.newHost()
		s.event("%s is added", h.id)
		h.start()
	case kind == "remove node" && len(members) > max(s.config.Nodes-1, 2) && !s.losing.Load():
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

// remove acts as an operator: it repeats the removal of a node that some of several groups refused.
func (s *Simulation) remove(p *process, h *host) {
	for range maxLooks {
		err := p.node.RemoveNode(h.id)
		s.event("removing %s: %v", h.id, err)
		if s.groups() == 1 || err == nil || isUnknownNode(err) {
			return
		}
		time.Sleep(lookAgain)
		for p = nil; p == nil; time.Sleep(lookAgain) {
			p = s.anyProcess(rand.New(rand.NewPCG(s.config.Seed, uint64(s.elapsed()))))
		}
	}
}

// isUnknownNode reports whether a removal failed because the cluster has no such node. The error of a single group names
// the group first, and another group may still have the node.
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
