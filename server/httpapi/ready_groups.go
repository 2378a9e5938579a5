package httpapi

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/service"
)

// A node stays ready while a Raft group has no leader, unless it is the only one. Otherwise every node would be
// unready, and a load balancer would cut clients off from the other groups as well.

const (
	// groupsWait bounds the wait of /readyz for all groups. It is below the default timeout of probes, one second,
	// because a probe that finds one group silent still answers 200.
	groupsWait = readyWait / 2
	// maxGroupAge is the greatest age of the state of a group whose leader is known and does not confirm it. By then a
	// dead leader is replaced or unknown. An older state means that this node lags, or cannot reach the leader.
	maxGroupAge = 10 * time.Second
	// startPatience bounds the time after a start in which a group without a leader makes the node unready, because
	// the node has never confirmed its state of the group. It exceeds the first elections after a full stop.
	startPatience = 30 * time.Second
)

// groupProbes coalesces the questions about each group. It has at most one entry for each group.
type groupProbes struct {
	mu  sync.Mutex
	all map[int]*readyProbe
	led map[int]bool // groups whose leader this node has known
}

// everLed reports whether this node has known a leader of a group since its start. led reports whether it knows the
// leader now.
func (p *groupProbes) everLed(group int, led bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if led {
		if p.led == nil {
			p.led = make(map[int]bool)
		}
		p.led[group] = true
	}
	return p.led[group]
}

func (p *groupProbes) of(group int) *readyProbe {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == nil {
		p.all = make(map[int]*readyProbe)
	}
	if p.all[group] == nil {
		p.all[group] = new(readyProbe)
	}
	return p.all[group]
}

// groupsReady reports whether any group can decide.
func groupsReady(t *limiter.Topology) readiness {
	led, named := 0, 0
	for _, g := range t.Groups {
		if m := t.Member(g.Leader); m != nil {
			led++
			if m.HasAddress() { // else CLUSTER SLOTS cannot name it
				named++
			}
		}
	}
	said := fmt.Sprintf("of %d of %d groups", led, len(t.Groups))
	if first := t.Groups[0].Leader; t.LedBy(first) == len(t.Groups) {
		said = first
	}
	switch {
	case led == 0:
		return readiness{"leader", false, "none"}
	case named == 0:
		return readiness{"leader", false, said + ", whose client address is not known yet"}
	}
	return readiness{"leader", true, "ok (" + said + ")"}
}

// groupsCurrent reports whether this node has applied the entries of its groups committed before the call. At least one
// group must confirm that. Groups that are excused do not count. A group that this node lacks counts if its leader is
// up, because this node forwards to it. Soon after a start, this node must also have known its leader.
func (s *probes) groupsCurrent(t *limiter.Topology) readiness {
	confirmed, old, firstOld, unknown := 0, 0, 0, 0
	var oldest time.Duration
	for i, err := range s.askGroups(t) {
		age := s.Replica.StaleForOf(t.Groups[i].Slots.First)
		switch leader := t.Member(t.Groups[i].Leader); {
		case lacks(t, &t.Groups[i]):
			if leader != nil && leader.Up {
				confirmed++
			}
			if !s.groups.everLed(i, leader != nil) && time.Since(s.Started) < startPatience {
				unknown++
			}
		case err == nil:
			confirmed++
		case t.Groups[i].Ended == "" && !s.excused(&t.Groups[i], err, age):
			if old++; old == 1 {
				firstOld = i
			}
			oldest = max(oldest, age)
		}
	}
	switch {
	case old > 0:
		return readiness{"state", false, fmt.Sprintf("of %d of %d groups may be %d ms old, first of group %d", old,
			len(t.Groups), service.CeilMs(oldest), firstOld)}
	case unknown > 0:
		return readiness{"state", false, fmt.Sprintf("the leaders of %d of %d groups are not known yet", unknown,
			len(t.Groups))}
	case confirmed == 0:
		return readiness{"state", false, fmt.Sprintf("may be %d ms old: no majority of any group can be reached",
			service.CeilMs(s.Replica.StaleFor()))}
	case confirmed < len(t.Groups):
		return readiness{"state", true, fmt.Sprintf("ok (of %d of %d groups)", confirmed, len(t.Groups))}
	}
	return readiness{"state", true, "ok"}
}

// lacks reports whether this node has no replica of a group, or one that still catches up, like the target of a move.
func lacks(t *limiter.Topology, g *limiter.Group) bool {
	return g.Away || g.Has(t.Self) && !t.Serves(g, t.Self)
}

// askGroups asks for the read index of the groups that this node does not lack, at the same time. It returns the errors
// in the order of the groups.
func (s *probes) askGroups(t *limiter.Topology) []error {
	late, end := context.WithTimeout(context.Background(), groupsWait)
	defer end()
	rounds := make([]*probeRound, len(t.Groups))
	for i := range t.Groups {
		if lacks(t, &t.Groups[i]) {
			continue
		}
		slot := t.Groups[i].Slots.First
		rounds[i] = s.groups.of(i).join(func() error { return s.Replica.ReadIndexOf(slot) })
	}
	errs := make([]error, len(rounds))
	for i, r := range rounds {
		if r != nil {
			errs[i] = r.await(late)
		}
	}
	return errs
}

// excused reports whether a group that did not confirm the state leaves the node ready.
func (s *probes) excused(g *limiter.Group, err error, age time.Duration) bool {
	if g.Leader == "" || errors.Is(err, limiter.ErrClusterDown) { // every node sees the same
		return age < limiter.UnknownAge || time.Since(s.Started) > startPatience
	}
	return age <= maxGroupAge
}
