package router

import (
	"time"

	"github.com/weir-project/weir/limiter"
)

const (
	// spreadEvery is how often a node looks for groups that another node should lead.
	spreadEvery = time.Second
	// steadyFor is how many times in a row the preferred leader of a group must be up and close behind before it gets
	// the group. So a node that comes and goes moves no leadership.
	steadyFor = 10
	// closeBehind is the most entries that the preferred leader may lack.
	closeBehind = 1000
)

// spreadLeaders moves leadership so that all nodes lead about the same number of groups. Every node does so for the
// groups that it leads, without asking others: the preferred leader of a group follows from its members.
func (r *Router) spreadLeaders() {
	tick := time.NewTicker(spreadEvery)
	defer tick.Stop()
	seen := make([]int, len(r.all()))
	for {
		select {
		case <-r.stop:
			return
		case <-tick.C:
			r.spreadOne(seen)
		}
	}
}

// spreadOne gives at most one group to its preferred leader. seen counts for each group how often in a row its
// preferred leader was able to lead it.
func (r *Router) spreadOne(seen []int) {
	for i, g := range r.all() {
		t := g.Topology()
		want := preferred(t, i)
		if want == nil || !t.Leads() || want.ID == t.Self || !want.Up || want.LagEntries > closeBehind {
			seen[i] = 0
			continue
		}
		if seen[i]++; seen[i] < steadyFor {
			continue
		}
		seen[i] = 0
		r.log.Info("leadership of a group moves to its preferred node", "group", i, "to", want.ID)
		if err := g.TransferLeadership(want.ID); err != nil {
			r.log.Warn("leadership of a group could not be moved", "group", i, "to", want.ID, "error", err)
		}
		return
	}
}

// preferred returns the voter that should lead a group, or nil. It assigns the groups to the voters round-robin, in
// the order of the voters' ids.
func preferred(t *limiter.Topology, group int) *limiter.Member {
	voters := t.Count(limiter.IsVoter)
	if voters == 0 {
		return nil
	}
	left := group % voters
	for i := range t.Nodes {
		if m := &t.Nodes[i]; m.Voter {
			if left == 0 {
				return m
			}
			left--
		}
	}
	return nil
}
