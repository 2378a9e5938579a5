package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/weir-project/weir/bench/servers"
)

// contest is a scenario with the targets of its entrants.
type contest struct {
	Scenario
	cells []*cell
}

// contests finds a target for each entrant, and one server for all entrants that may share it. It omits a target that
// is not available, and the report says why.
func (r *Runner) contests(scenarios []Scenario, report *Report) (all []contest, err error) {
	found := make(map[string]Target)
	for _, s := range scenarios {
		c := contest{Scenario: s}
		for _, e := range s.Entrants {
			if err := r.lacks(e.Load); err != nil {
				report.LeaveOut("load by "+string(e.Load.By), err)
				continue
			}
			t, ok := found[s.key(e)]
			if !ok {
				t, err = r.Find(e.Target, s.instance(e))
				if errors.Is(err, ErrToolMissing) {
					report.LeaveOut(e.Target, err)
					continue
				}
				if err != nil {
					return nil, err
				}
				found[s.key(e)] = t
			}
			if t.offers(e.Load) {
				c.cells = append(c.cells, &cell{Entrant: e, target: t})
			}
		}
		if len(c.cells) > 0 {
			all = append(all, c)
		}
	}
	return all, nil
}

// start starts the servers of a contest.
func (c *contest) start(ctx context.Context, report *Report) error {
	for _, one := range c.cells {
		server := one.target.Server
		if err := server.Start(ctx); err != nil {
			return fmt.Errorf("%s: %w", one.Target, err)
		}
		if err := report.introduce(ctx, one.target); err != nil {
			return err
		}
	}
	return nil
}

// stopUnless stops the servers of a contest that no later contest needs.
func (c *contest) stopUnless(later []contest) error {
	var errs []error
	for _, one := range c.cells {
		if !slices.ContainsFunc(later, func(l contest) bool { return l.needs(one.target.Server) }) {
			errs = append(errs, one.target.Server.Stop())
		}
	}
	return errors.Join(errs...)
}

func (c *contest) needs(s servers.Server) bool {
	return slices.ContainsFunc(c.cells, func(one *cell) bool { return processes(one.target.Server) == processes(s) })
}

// processes returns the server that several targets share.
func processes(s servers.Server) servers.Server {
	for {
		way, ok := s.(interface{ Unwrap() servers.Server })
		if !ok {
			return s
		}
		s = way.Unwrap()
	}
}
