package cluster

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/weir-project/weir/internal/cli/remote"
	"github.com/weir-project/weir/raftstore/placement"
)

type applyCmd struct {
	File string `arg:"" placeholder:"FILE" help:"A plan of weir cluster plan --json; - for standard input."`
}

type drainCmd struct {
	ID string `arg:"" help:"The id of the node that shall have no replicas."`
}

// maxPlanBytes bounds the file of a plan: 1,024 groups with one move each take a fraction of it.
const maxPlanBytes = 1 << 20

func (a *applyCmd) Run(c *Command) error {
	p, err := a.read()
	if err != nil {
		return err
	}
	status, err := c.AskStatus()
	if err != nil {
		return err
	}
	if err := p.fits(&status); err != nil {
		return err
	}
	return c.carryOut(os.Stdout, p.Moves)
}

// read reads the plan.
func (a *applyCmd) read() (p plan, err error) {
	in := os.Stdin
	if a.File != "-" {
		if in, err = os.Open(a.File); err != nil {
			return p, err
		}
		defer in.Close()
	}
	b, err := io.ReadAll(io.LimitReader(in, maxPlanBytes))
	if err == nil {
		err = json.Unmarshal(b, &p)
	}
	if err != nil {
		return p, fmt.Errorf("%s is not a plan of weir cluster plan --json: %w", a.File, err)
	}
	return p, nil
}

// fits returns an error unless the plan was made on the present state of the cluster, or a stopped command has carried
// out some of its moves.
func (p *plan) fits(s *remote.Status) error {
	if p.ClusterID != s.ClusterID {
		return fmt.Errorf("the plan is of cluster %s, and this is cluster %s", p.ClusterID, s.ClusterID)
	}
	state := stateOf(s)
	if state.Hash() == p.State {
		return nil
	}
	for _, m := range p.Moves {
		if m.Group < 0 || m.Group >= len(state.Groups) {
			return fmt.Errorf("the plan moves group %d, and the cluster has %d groups", m.Group, len(state.Groups))
		}
		undo(&state.Groups[m.Group], m)
	}
	if state.Hash() != p.State {
		return errors.New("nodes or replicas have changed since the plan was made: plan again")
	}
	return nil
}

// undo makes a group as it was before a move that has begun or is done.
func undo(g *placement.Group, m placement.Move) {
	if !slices.Contains(g.Members, m.To) {
		return
	}
	g.Members = slices.DeleteFunc(g.Members, func(id string) bool { return id == m.To })
	if m.From != "" && !slices.Contains(g.Members, m.From) {
		g.Members = append(g.Members, m.From)
	}
}

// carryOut carries out moves one after the other, and waits until the status shows them.
func (c *Command) carryOut(w io.Writer, moves []placement.Move) error {
	for _, m := range moves {
		if err := (&moveCmd{Group: m.Group, From: cmp.Or(m.From, "-"), To: m.To}).run(w, c); err != nil {
			return err
		}
	}
	for end := time.Now().Add(stuckAfter); ; time.Sleep(stepEvery) {
		status, err := c.AskStatus()
		if err == nil && shows(&status, moves) {
			_, err := fmt.Fprintf(w, "moves done: %d\n", len(moves))
			return err
		}
		if time.Now().After(end) {
			return errors.Join(errors.New("the moves are done, and the status does not show them yet"), err)
		}
	}
}

// shows reports whether a status shows that moves are done. A node learns of groups that it does not have once a
// second.
func shows(s *remote.Status, moves []placement.Move) bool {
	state := stateOf(s)
	return !slices.ContainsFunc(moves, func(m placement.Move) bool {
		has := state.Groups[m.Group].Members
		return slices.Contains(has, m.From) || !slices.Contains(has, m.To)
	})
}

// maxPlans bounds the plans of a drain. A plan moves one replica of a group. So two are enough, unless groups have
// fewer replicas than they shall have.
const maxPlans = 8

func (d *drainCmd) Run(c *Command) error { return d.run(os.Stdout, c) }

// run carries out plans until the node has no replicas.
func (d *drainCmd) run(w io.Writer, c *Command) error {
	for range maxPlans {
		_, state, err := c.askState()
		if err != nil {
			return err
		}
		moves, err := placement.Plan(state, []string{d.ID})
		switch {
		case err != nil:
			return err
		case !hasReplicas(&state, d.ID):
			_, err := fmt.Fprintf(w, "%s has no replicas\n", d.ID)
			return err
		}
		if err := c.carryOut(w, moves); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s still has replicas: look at weir cluster plan --drain %[1]s", d.ID)
}
