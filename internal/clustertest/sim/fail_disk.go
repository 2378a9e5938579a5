package sim

import (
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weir-project/weir/limiter"
)

const (
	// lookAgain is the interval at which a machine that lost its disk is checked.
	lookAgain = 200 * time.Millisecond
	// maxLooks bounds these checks. It covers the time until the last fault, and a recovery.
	maxLooks = 500
)

// lose removes a member's disk. The node stays a member under its id until it is removed. It must not take part
// meanwhile, and rejoins under another id. Only one machine at a time loses its disk, because acknowledged entries must
// survive on the disks of a majority less one.
func (s *Simulation) lose(h *host) {
	p := h.running()
	if p == nil || p.drain.Load() || s.shrinks() || !s.whole(3) || !h.settled() || s.moving() || s.losing.Swap(true) {
		return
	}
	s.replacing.Store(true)
	t := p.node.Topology()
	id := t.Self
	p.crash("its disk is lost", 0, 0)
	h.mu.Lock()
	h.mem, h.lost = vfs.NewCrashableMem(), true
	h.mu.Unlock()
	s.tasks.Go(func() {
		defer s.losing.Store(false)
		defer s.replacing.Store(false)
		for range maxLooks {
			if s.replaced(h, id) {
				s.refill(t, h)
				return
			}
			time.Sleep(lookAgain)
		}
		s.violation("%s does not come back after it lost its disk", h.id)
	})
}

// whole reports whether every group has at least a number of members, all of which know that all of them vote. A leader
// believes a promotion before a majority has it. If the leader's disk is lost then, the voters left may be half of
// those that count.
func (s *Simulation) whole(least int) bool {
	for i := range s.groups() {
		members := s.membersOf(i)
		if len(members) < least {
			return false
		}
		for _, p := range members {
			nodes := p.group[i].Topology().Nodes
			if !s.allVote(i, nodes) || len(nodes) != len(members) {
				return false
			}
		}
	}
	return true
}

// allVote reports whether all members of a group vote. Of the first of several groups with Config.Replicas, so many do.
func (s *Simulation) allVote(group int, nodes []limiter.Member) bool {
	followers := 0
	for _, m := range nodes {
		if isNonVoter(m) {
			followers++
		}
	}
	if s.config.Replicas > 0 && group == 0 {
		return len(nodes)-followers == s.config.Replicas
	}
	return followers == 0
}

func isNonVoter(m limiter.Member) bool { return !m.Voter }

// shrinks reports whether a member may be in removal.
func (s *Simulation) shrinks() bool {
	return slices.ContainsFunc(s.machines(), func(h *host) bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.removed && !h.gone
	})
}

// settled reports whether the host's node is a member of every group that votes. With Config.Replicas it is a member of
// every group of which it has a replica.
func (h *host) settled() bool {
	p := h.running()
	if p == nil {
		return false
	}
	return !slices.ContainsFunc(p.group, func(g replica) bool {
		t := g.Topology()
		self := t.Member(t.Self)
		if h.sim.config.Replicas > 0 {
			return t.Self != "" && self == nil
		}
		return self == nil || !self.Voter
	})
}

// replaced acts as an operator: it removes the id of the lost disk, restarts the machine whenever it has stopped, and
// checks whether it votes.
func (s *Simulation) replaced(h *host, lost string) bool {
	h.start()
	for _, other := range s.machines() {
		p := other.running()
		if other == h || p == nil || p.drain.Load() {
			continue
		}
		err := p.node.RemoveNode(lost)
		if err == nil || isUnknownNode(err) {
			return h.settled()
		}
	}
	return false
}
