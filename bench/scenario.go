package bench

import (
	"fmt"
	"slices"
)

// Scenario is a comparison: cells that are measured in turn, and the first of them is
// what the others are compared with.
type Scenario struct {
	Name     string    `json:"name"` // by which it can be asked for
	About    string    `json:"about"`
	Entrants []Entrant `json:"-"`
	// RateOf names the entrant whose top rate in a closed loop sets the rate of the
	// open loop that all entrants get: RateShare of it. Empty for none.
	RateOf    string  `json:"rate_of,omitempty"`
	RateShare float64 `json:"rate_share,omitempty"`
	// Axis names what grows from entrant to entrant; empty when nothing does.
	Axis string `json:"axis,omitempty"`
}

// Entrant is one cell of a scenario.
type Entrant struct {
	Label  string // in the scenario, unique
	Target string // see Contenders
	Load   Load
	At     float64 // where on the scenario's axis; 0 without one
}

// beside is a scenario in which all targets get the same load.
func beside(name string, l Load, targets ...string) Scenario {
	s := Scenario{Name: name, About: l.String()}
	for _, t := range targets {
		s.Entrants = append(s.Entrants, Entrant{Label: t, Target: t, Load: l})
	}
	return s
}

// growing is a scenario in which something grows, for one target after the other. set
// puts a value of it into a load.
func growing(name, axis string, l Load, values []int, set func(*Load, int), targets ...string) Scenario {
	s := Scenario{Name: name, Axis: axis, About: fmt.Sprintf("%s, %s from %d to %d", l.Workload, axis, values[0], values[len(values)-1])}
	for _, t := range targets {
		for _, v := range values {
			grown := l
			set(&grown, v)
			s.Entrants = append(s.Entrants, Entrant{fmt.Sprintf("%s, %d %s", t, v, axis), t, grown, float64(v)})
		}
	}
	return s
}

// Reshaped is the scenario with other loads. It fails when one of them makes no sense.
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

// Only is the scenario with these targets only, in its own order; all of them for none.
func (s Scenario) Only(targets []string) Scenario {
	if len(targets) > 0 {
		s.Entrants = slices.DeleteFunc(slices.Clone(s.Entrants), func(e Entrant) bool { return !slices.Contains(targets, e.Target) })
	}
	return s
}

// WithAddress adds the server that somebody else runs, under the load of the first
// entrant. Scenarios that fill their servers stay as they are.
func (s Scenario) WithAddress() Scenario {
	l := s.Entrants[0].Load
	if l.Filled || l.Held || s.Axis != "" {
		return s
	}
	l.Workload, l.DeniedPercent = Custom, 0
	s.Entrants = append(slices.Clone(s.Entrants), Entrant{Label: customName, Target: customName, Load: l})
	return s
}

// instance names the server of an entrant: scenarios share servers, except those that
// fill them or tell their memory.
func (s Scenario) instance(e Entrant) string {
	if e.Load.Filled || e.Load.Held {
		return s.Name + "-" + e.Label
	}
	return ""
}

// key is what identifies a server among all that a run makes.
func (s Scenario) key(e Entrant) string { return e.Target + "\x00" + s.instance(e) }
