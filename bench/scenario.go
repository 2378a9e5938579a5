package bench

import (
	"fmt"
	"slices"
)

// Scenario is a comparison. Its cells are measured in turn, and the first is the basis of the comparison.
type Scenario struct {
	Name     string    `json:"name"` // unique, for selection
	About    string    `json:"about"`
	Entrants []Entrant `json:"-"`
	// RateOf names an entrant. All entrants get an open loop with RateShare of its top rate in a closed loop. Empty for
	// none.
	RateOf    string  `json:"rate_of,omitempty"`
	RateShare float64 `json:"rate_share,omitempty"`
}

// Entrant is one cell of a scenario.
type Entrant struct {
	Label  string // unique in the scenario
	Target string // see Contenders
	Load   Load
}

// beside returns a scenario in which all targets get the same load.
func beside(name string, l Load, targets ...string) Scenario {
	s := Scenario{Name: name, About: l.String()}
	for _, t := range targets {
		s.Entrants = append(s.Entrants, Entrant{Label: t, Target: t, Load: l})
	}
	return s
}

// growing returns a scenario in which a quantity grows, for one target after the other. set puts a value of it into a
// load.
func growing(name, quantity string, l Load, values []int, set func(*Load, int), targets ...string) Scenario {
	s := Scenario{Name: name,
		About: fmt.Sprintf("%s, %s from %d to %d", l.Workload, quantity, values[0], values[len(values)-1])}
	for _, t := range targets {
		for _, v := range values {
			grown := l
			set(&grown, v)
			s.Entrants = append(s.Entrants, Entrant{fmt.Sprintf("%s, %d %s", t, v, quantity), t, grown})
		}
	}
	return s
}

// Reshaped returns the scenario with other loads. It fails if one of them is invalid.
func (s Scenario) Reshaped(change func(*Load)) (Scenario, error) {
	s.Entrants = append([]Entrant(nil), s.Entrants...)
	for i := range s.Entrants {
		e := &s.Entrants[i]
		before := e.Load
		change(&e.Load)
		if err := e.Load.check(); err != nil {
			return s, fmt.Errorf("%s: %w", s.Name, err)
		}
		if e.Load != before {
			s.About = e.Load.String()
		}
	}
	return s, nil
}

// Only returns the scenario with these targets only, in its own order. No targets means all.
func (s Scenario) Only(targets []string) Scenario {
	if len(targets) > 0 {
		s.Entrants = slices.DeleteFunc(
			slices.Clone(s.Entrants), func(e Entrant) bool { return !slices.Contains(targets, e.Target) })
	}
	return s
}

// instance names the server of an entrant. Scenarios share servers, except those that fill them or measure their
// memory.
func (s Scenario) instance(e Entrant) string {
	if e.Load.Filled || e.Load.Held {
		return s.Name + "-" + e.Label
	}
	return ""
}

// key identifies a server among all servers of a run.
func (s Scenario) key(e Entrant) string { return e.Target + "\x00" + s.instance(e) }
