package router

import (
	"slices"
	"sync"
	"time"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore/placement"
)

const (
	// spreadEvery is how often a node looks for groups that another node should lead.
	spreadEvery = time.Second
	// steadyFor is how many times in a row the preferred leader of a group must be up and close behind before it gets
	// the group. So a node that comes and goes moves no leadership.
	steadyFor = 10
	// transfersAtOnce bounds the groups that a node gives away at the same time. A group decides nothing meanwhile.
	transfersAtOnce = 4
	// againAfter is how many looks pass after a failed transfer before the group is given again.
	againAfter = 3
	// closeBehind is the most entries that the preferred leader may lack.
	closeBehind = 1000
	// transferHold is how long a leader that an operator chose keeps a group, unless the preferred leader fails. It is
	// long enough for maintenance, and short enough that a forgotten transfer leaves no node with all leaders.
	transferHold = 10 * time.Minute
	// failsWithin is how soon after a change of the leader the leader before it must be down, so that the change counts
	// as a failover. Other nodes see it down within a second.
	failsWithin = 5 * time.Second
)

// spread is what a node remembers about the leadership of one group.
type spread struct {
	seen   int       // how often in a row want was able to lead
	want   string    // the id of the node that should lead
	leader string    // the last known leader
	before string    // the leader that transferred the group to this node
	held   time.Time // when it did; zero: no hold is in force
}

// spreadLeaders moves leadership so that all nodes lead about the same number of groups. Every node does so for the
// groups that it leads, without asking others: the preferred leader of a group follows from its members.
func (r *Router) spreadLeaders() {
	tick := time.NewTicker(spreadEvery)
	defer tick.Stop()
	groups := make([]spread, len(r.all()))
	for {
		select {
		case <-r.stop:
			return
		case <-tick.C:
			r.spreadDue(groups, time.Now())
		}
	}
}

// spreadDue gives every group that is due to the node that should lead it, transfersAtOnce at the same time.
func (r *Router) spreadDue(groups []spread, now time.Time) {
	_, gone := r.group(0)
	even := r.evenLeaders()
	var moves sync.WaitGroup
	defer moves.Wait()
	free := make(chan struct{}, transfersAtOnce)
	for i, g := range r.live() {
		s, t := &groups[i], g.Topology()
		first, want := preferred(t, i), fallback(t, i, len(groups))
		if even != nil {
			want = t.Member(idIn(t, r.base().Topology(), even[i]))
			first = want
		}
		if gone != nil {
			want, s.held = another(t), time.Time{}
		}
		if !s.due(t, first, want, now, transferred(g, now)) {
			continue
		}
		s.seen = steadyFor - againAfter
		free <- struct{}{}
		moves.Go(func() {
			defer func() { <-free }()
			r.log.Info("leadership of a group moves to another node", "group", i, "to", want.ID)
			if err := g.TransferLeadership(want.ID); err != nil {
				r.log.Warn("leadership of a group could not be moved", "group", i, "to", want.ID, "error", err)
			}
		})
	}
}

// evenLeaders returns for each group the node that should lead it, by its id in the first group, if groups are on a
// part of the nodes. A leader keeps its group if the others lead as many. Every node computes the same from the same
// reports.
func (r *Router) evenLeaders() []string {
	if r.replicas == 0 {
		return nil
	}
	t := r.Topology()
	able := make([][]string, len(t.Groups))
	for i := range t.Groups {
		g := &t.Groups[i]
		for _, m := range g.Members {
			switch {
			case !m.Voter || !up(t.Member(m.ID)) || m.LagEntries > closeBehind:
			case m.ID == g.Leader:
				able[i] = slices.Insert(able[i], 0, m.ID)
			default:
				able[i] = append(able[i], m.ID)
			}
		}
	}
	return placement.Leaders(able)
}

// transferred reports whether the leader of a group has just transferred its leadership to this node. A leader that
// failed, or that was paused for a moment, did not.
func transferred(g Group, now time.Time) bool {
	n, ok := g.(interface{ LastTransfer() time.Time })
	return ok && now.Sub(n.LastTransfer()) <= failsWithin
}

// due notes the leader of a group, and reports whether this node should give the group to want. That is first, the
// preferred leader, or the node that leads in its place.
func (s *spread) due(t *limiter.Topology, first, want *limiter.Member, now time.Time, transferred bool) bool {
	s.note(t, first, now, transferred)
	able := want != nil && t.Leads() && want.ID != t.Self && want.Up && want.LagEntries <= closeBehind
	if !able || !s.held.IsZero() && now.Sub(s.held) < transferHold {
		s.seen = 0
		return false
	}
	if s.want != want.ID {
		s.want, s.seen = want.ID, 0
	}
	s.seen++
	return s.seen >= steadyFor
}

// note begins and ends the hold. A transfer begins it. A leader that transfers its groups because it stops is soon
// down, which ends the hold.
func (s *spread) note(t *limiter.Topology, first *limiter.Member, now time.Time, transferred bool) {
	if t.Leads() && s.leader != "" && s.leader != t.Self && transferred {
		s.before, s.held = s.leader, now
	}
	if t.Leader != "" {
		s.leader = t.Leader
	}
	failed := now.Sub(s.held) <= failsWithin && !up(t.Member(s.before))
	if !t.Leads() || !up(first) || failed {
		s.held = time.Time{}
	}
}

// another returns a voter that can lead a group in the place of this node, or nil. A node on which the first group has
// ended gives every other group away: a leader asks the first group which nodes belong to the cluster.
func another(t *limiter.Topology) *limiter.Member {
	i := slices.IndexFunc(t.Nodes, func(m limiter.Member) bool {
		return m.Voter && m.ID != t.Self && m.Up && m.LagEntries <= closeBehind
	})
	if i < 0 {
		return nil
	}
	return &t.Nodes[i]
}

func up(m *limiter.Member) bool { return m != nil && m.Up }

// preferred returns the voter that should lead a group, or nil. It assigns the groups to the voters round-robin, in
// the order of the voters' ids.
func preferred(t *limiter.Topology, group int) *limiter.Member {
	voters := voters(t)
	if len(voters) == 0 {
		return nil
	}
	return voters[group%len(voters)]
}

// fallback returns the preferred leader of one of n groups, or a voter in its place if it is down. The groups of the
// voters that are down go round the voters that are up, first to those that are preferred by one group less. So all
// that are up lead the same number of groups, or one more.
func fallback(t *limiter.Topology, group, n int) *limiter.Member {
	voters := voters(t)
	first := preferred(t, group)
	if first == nil || first.Up {
		return first
	}
	var turns []*limiter.Member // of the voters that are preferred by one group less
	down, before := 0, 0        // voters that are down, and those of them before the preferred leader
	for i, m := range voters {
		switch {
		case !m.Up && i < group%len(voters):
			down, before = down+1, before+1
		case !m.Up:
			down++
		case i >= n%len(voters):
			turns = append(turns, m)
		}
	}
	turn := group/len(voters)*down + before // the number of such groups before this one
	if turn < len(turns) {
		return turns[turn]
	}
	turn -= len(turns)
	all := slices.DeleteFunc(voters, func(m *limiter.Member) bool { return !m.Up })
	if len(all) == 0 {
		return first
	}
	return all[turn%len(all)]
}

// voters returns the voters of a group, in the order of their ids.
func voters(t *limiter.Topology) (voters []*limiter.Member) {
	for i := range t.Nodes {
		if m := &t.Nodes[i]; m.Voter {
			voters = append(voters, m)
		}
	}
	return voters
}
