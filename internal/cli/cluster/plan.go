package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/gomodule/redigo/redis"

	"github.com/weir-project/weir/internal/cli/cmdline"
	"github.com/weir-project/weir/internal/cli/remote"
	"github.com/weir-project/weir/internal/cli/terminal"
	"github.com/weir-project/weir/raftstore/placement"
)

type planCmd struct {
	Drain []string `env:"-" placeholder:"NODE" help:"Nodes that shall have no replicas, separated by commas."`
	JSON  bool     `env:"-" name:"json" help:"Print JSON: the moves, and a fingerprint of the state."`
}

// plan is a plan as a file.
type plan struct {
	ClusterID string           `json:"cluster_id"`
	State     string           `json:"state"` // placement.State.Hash of the state that the plan was made on
	Moves     []placement.Move `json:"moves"`
}

func (p *planCmd) Run(c *Command) error { return p.show(os.Stdout, c) }

func (p *planCmd) show(w io.Writer, c *Command) error {
	status, state, err := c.askState()
	if err != nil {
		return err
	}
	if err = c.measure(&status, &state); err != nil {
		return err
	}
	moves, errPlan := placement.Plan(state, p.Drain)
	switch {
	case errPlan != nil && moves == nil:
	case p.JSON:
		err = terminal.WriteJSON(w, plan{status.ClusterID, state.Hash(), append([]placement.Move{}, moves...)})
	default:
		err = writeMoves(w, moves)
		warn(os.Stderr, &state)
		for _, n := range state.Nodes {
			if !n.Up && !slices.Contains(p.Drain, n.ID) && hasReplicas(&state, n.ID) {
				fmt.Fprintf(os.Stderr, "%[1]s is down and keeps its replicas: --drain=%[1]s moves them\n",
					terminal.PlainText(n.ID))
			}
		}
	}
	return cmp.Or(err, errPlan)
}

// warn tells what no move mends.
func warn(w io.Writer, s *placement.State) {
	zoned := slices.ContainsFunc(s.Nodes, func(n placement.Node) bool { return n.Zone != "" })
	for _, n := range s.Nodes {
		if zoned && n.Zone == "" {
			fmt.Fprintf(w, "%s has no zone, and others have one: restart it with --zone\n", terminal.PlainText(n.ID))
		}
	}
	for g := range s.Groups {
		if voters, up := s.Votes(g); voters > 0 && 2*up <= voters {
			fmt.Fprintf(w, "group %d decides nothing: %d of its %d members are up, which is no majority\n", g, up,
				voters)
		}
	}
}

// askState asks for the state of a cluster whose replicas can move.
func (c *Command) askState() (status remote.Status, state placement.State, err error) {
	if status, err = c.AskStatus(); err == nil && status.Replicas == 0 {
		err = errors.New("every node of this cluster has a replica of every group: only a cluster that was founded " +
			"with --replicas has replicas to move")
	}
	return status, stateOf(&status), err
}

func hasReplicas(s *placement.State, id string) bool {
	return slices.ContainsFunc(s.Groups, func(g placement.Group) bool { return slices.Contains(g.Members, id) })
}

// stateOf returns what a plan needs of a status. The sizes are unknown.
func stateOf(s *remote.Status) placement.State {
	state := placement.State{Replicas: s.Replicas}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		state.Nodes = append(state.Nodes, placement.Node{ID: n.ID, Zone: n.Zone, Up: n.Up})
	}
	for i := range s.Groups {
		var group placement.Group
		for _, r := range s.Groups[i].Replicas {
			group.Members = append(group.Members, r.ID)
			if !r.Voter {
				group.New = append(group.New, r.ID)
			}
		}
		state.Groups = append(state.Groups, group)
	}
	return state
}

// measure asks the nodes for their memory. The replicas on a node count as equally large, because hash slots divide the
// keys among the groups. What a node does not tell stays unknown.
func (c *Command) measure(s *remote.Status, state *placement.State) error {
	password, err := cmdline.SecretFrom("password", "", c.PasswordFile)
	if err != nil {
		return err
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if !n.Up || n.ClientAddr == "" {
			continue
		}
		info, err := redis.String(c.askNode(n.ClientAddr, password, "INFO", "memory"))
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s does not tell its memory: %v\n", terminal.PlainText(n.ID), err)
			continue
		}
		state.Nodes[i].Memory = number(info, "maxmemory")
		var of []*placement.Group // the groups that the node has
		for g := range state.Groups {
			if g == 0 || slices.Contains(state.Groups[g].Members, n.ID) { // every node has the first one
				of = append(of, &state.Groups[g])
			}
		}
		for _, g := range of {
			g.Bytes = max(g.Bytes, number(info, "used_memory_dataset")/int64(len(of)))
		}
	}
	return nil
}

// number returns a number of INFO, or 0.
func number(info, name string) (n int64) {
	for line := range strings.Lines(info) {
		if text, found := strings.CutPrefix(line, name+":"); found {
			n, _ = strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		}
	}
	return n
}

func writeMoves(w io.Writer, moves []placement.Move) error {
	if len(moves) == 0 {
		_, err := fmt.Fprintln(w, "nothing to move")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "GROUP\tFROM\tTO\tSIZE\tWHY")
	total := int64(0)
	for _, m := range moves {
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\n", m.Group, cmp.Or(terminal.PlainText(m.From), "-"),
			terminal.PlainText(m.To), sizeText(m.Bytes), terminal.PlainText(m.Why))
		total += m.Bytes
	}
	fmt.Fprintf(t, "\nmoves: %d, size: about %s. Nothing was changed. Plan again after them.\n", len(moves),
		sizeText(total))
	return t.Flush()
}

func sizeText(bytes int64) string {
	if bytes == 0 {
		return "unknown"
	}
	return cmdline.BytesText(uint64(bytes))
}
