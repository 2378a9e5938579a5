package sim

import (
	"maps"
	"slices"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/faults"
	"github.com/weir-project/weir/limiter"
)

const (
	// maxRecovery bounds the time from the end of all faults until every member answers. One exchange of the Raft
	// library may wait ten seconds for a lost answer. Then follow an election and the replication of missed entries to
	// a new node.
	maxRecovery = 25 * time.Second
	// misroutesInARow is how often in a row an operation may reach a wrong group. StaleMap, which misroutes half of the
	// operations at random, does not come near it.
	misroutesInARow = 100
	// pollEvery is the interval at which a recovery is checked.
	pollEvery = 20 * time.Millisecond
)

// heal ends all faults and restarts every machine.
func (s *Simulation) heal() {
	s.event("everything heals")
	s.net.heal()
	for _, h := range s.machines() {
		if p := h.running(); p != nil {
			p.disk.failAt(0, false)
			p.logs.release(true)
		}
	}
	for _, h := range s.machines() {
		h.start()
	}
}

// revive restarts processes that stopped by themselves: after the last disk errors, a stuck transfer, or a removal in
// progress.
func (s *Simulation) revive() {
	for _, h := range s.machines() {
		h.start()
	}
}

// within polls a condition, and reports whether it became true in time.
func (s *Simulation) within(limit time.Duration, so func() bool) bool {
	for began := time.Now(); time.Since(began) < limit && !s.found(); time.Sleep(pollEvery) {
		if so() {
			return true
		}
		s.revive()
	}
	return false
}

// found reports whether the injected mistake has been detected.
func (s *Simulation) found() bool {
	s.report.mu.Lock()
	defer s.report.mu.Unlock()
	return s.config.Faults != (faults.Set{}) && len(s.report.Violations) > 0
}

// answers waits until every member answers a decision, and reports whether all do so in time.
func (s *Simulation) answers() bool {
	began := time.Now()
	if !s.within(maxRecovery, s.allAnswer) {
		return false
	}
	s.report.Recovery = max(s.report.Recovery, time.Since(began))
	return true
}

func (s *Simulation) allAnswer() bool {
	members := s.members()
	if len(members) == 0 {
		return false
	}
	for _, p := range members {
		for _, key := range s.probes() {
			if _, ok := p.look(key); !ok {
				return false
			}
		}
	}
	return true
}

// look asks a node how many units of a key are in use.
func (p *process) look(key string) (used int64, ok bool) {
	for range misroutesInARow {
		out, err := p.ask([]engine.Op{{Key: []byte(key), Limit: limitOf(key)}}, false)
		if err == nil && out[0].Status == limiter.ErrWrongGroup.Status() {
			continue
		}
		if err != nil || out[0].Status != engine.OK {
			return 0, false
		}
		return out[0].Limit - out[0].Remaining, true
	}
	return 0, false
}

// ask asks every member in turn how many units of a key are in use. All members must give the same number. After one
// missing answer it asks no member again.
func (s *Simulation) ask(key string) (used int64, ok bool) {
	if s.mute {
		return 0, false
	}
	answers := map[string]int64{}
	all := s.within(maxRecovery, func() bool {
		members := s.members()
		for _, p := range members {
			if _, had := answers[p.host.id]; had {
				continue
			}
			if answers[p.host.id], ok = p.look(key); !ok {
				delete(answers, p.host.id)
				return false
			}
		}
		return len(members) > 0
	})
	if !all {
		s.mute = true
		s.violation("the members do not answer for %s", key)
		return 0, false
	}
	values := slices.Sorted(maps.Values(answers))
	if least, most := values[0], values[len(values)-1]; least != most {
		s.violation("%s: the members differ in how many units are used: %v", key, answers)
	}
	return values[0], true
}

// members returns the running processes of the members of all groups. It returns none while a group has no leader, or
// a member does not run.
func (s *Simulation) members() (all []*process) {
	for i := range s.groups() {
		members := s.membersOf(i)
		if members == nil {
			return nil
		}
		for _, p := range members {
			if !slices.Contains(all, p) {
				all = append(all, p)
			}
		}
	}
	return all
}

// membersOf returns the running processes of the members of a group, as its leader knows them. It returns none without
// a leader, or while a member does not run.
func (s *Simulation) membersOf(group int) (members []*process) {
	hosts := s.machines()
	for _, h := range hosts {
		p := h.running()
		if p == nil {
			continue
		}
		t := p.group[group].Topology()
		if !h.is(t.Leader) {
			continue
		}
		for _, m := range t.Nodes {
			i := slices.IndexFunc(hosts, func(h *host) bool { return h.is(m.ID) })
			q := hosts[i].running()
			if q == nil {
				return nil
			}
			members = append(members, q)
		}
		return members
	}
	return nil
}
