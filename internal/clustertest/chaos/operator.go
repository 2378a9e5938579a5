package chaos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// An operator moves replicas with the commands of docs/scaling.md. The commands are those of the node's own program.

// weir runs a command at the node and returns what it prints. The command dies with ctx.
func (n *Node) weir(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, n.binary, append(args, "--addr", n.Addr)...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("weir %v at %s: %w: %s%s", args, n.ID, err, out, said.String())
	}
	return string(out), err
}

// tierStatus is what a node says about a cluster whose groups are on a part of the nodes.
type tierStatus struct {
	Nodes  []tierNode
	Groups []tierGroup
}

type tierNode struct {
	ID string
	Up bool
}

type tierGroup struct {
	Leader   string
	Replicas []tierReplica
}

type tierReplica struct {
	ID    string
	Voter bool
}

func (n *Node) status() (s tierStatus, err error) {
	reply, err := n.Ask(askTimeout, "WEIR.CLUSTER", "STATUS")
	if err != nil {
		return s, err
	}
	is := func(v any) bool { return v == int64(1) }
	for _, item := range items(fields(reply)["nodes"]) {
		f := fields(item)
		s.Nodes = append(s.Nodes, tierNode{fmt.Sprint(f["id"]), is(f["up"])})
	}
	for _, item := range items(fields(reply)["groups"]) {
		f := fields(item)
		g := tierGroup{Leader: fmt.Sprint(f["leader"])}
		for _, of := range items(f["replicas"]) {
			r := fields(of)
			g.Replicas = append(g.Replicas, tierReplica{fmt.Sprint(r["id"]), is(r["voter"])})
		}
		s.Groups = append(s.Groups, g)
	}
	return s, nil
}

func items(reply any) []any {
	all, _ := reply.([]any)
	return all
}

// fields returns the fields of a map in a reply.
func fields(reply any) map[string]any {
	all := map[string]any{}
	for pair := range slices.Chunk(items(reply), 2) {
		all[fmt.Sprint(pair[0])] = pair[len(pair)-1]
	}
	return all
}

// allUp reports whether the status shows so many nodes, and all of them as up.
func (s *tierStatus) allUp(nodes int) bool {
	return len(s.Nodes) == nodes && !slices.ContainsFunc(s.Nodes, func(n tierNode) bool { return !n.Up })
}

// whole reports whether each of so many groups has a leader, and exactly as many voters as it shall have replicas.
func (s *tierStatus) whole(groups, replicas int) bool {
	for group := range s.Groups {
		if _, _, whole := s.members(group, replicas); !whole {
			return false
		}
	}
	return len(s.Groups) == groups
}

// members returns the nodes that have a replica of a group, in their order, and its leader. The group is whole if it
// has a leader and as many voters as it shall have replicas.
func (s *tierStatus) members(group, replicas int) (ids []string, leader string, whole bool) {
	g := s.Groups[group]
	whole = g.Leader != "" && len(g.Replicas) == replicas
	for _, r := range g.Replicas {
		ids, whole = append(ids, r.ID), whole && r.Voter
	}
	slices.Sort(ids)
	return ids, g.Leader, whole
}

// with returns the node that has an id. A node that was replaced has its own name and a suffix.
func (c *Cluster) with(id string) *Node {
	name, _, _ := strings.Cut(id, "~")
	i := slices.IndexFunc(c.Nodes, func(n *Node) bool { return n.ID == name })
	if i < 0 {
		return nil
	}
	return c.Nodes[i]
}

// move is a move of a replica between two nodes, by their ids.
type move struct {
	group    int
	from, to string
}

func (v move) String() string { return fmt.Sprintf("group %d from %s to %s", v.group, v.from, v.to) }

// args returns the command of an operator.
func (v move) args() []string {
	return []string{"cluster", "move", strconv.Itoa(v.group), v.from, v.to}
}

// errNothingToDraw reports that a status names no node that lacks a replica of a group, or none that has one.
var errNothingToDraw = errors.New("no replica can move")

// draw returns a move of a random replica of a group, and the group's leader.
func (s *tierStatus) draw(rng *rand.Rand, group int) (v move, leader string, err error) {
	if group >= len(s.Groups) {
		return v, "", errNothingToDraw
	}
	has, leader, _ := s.members(group, 0)
	var lack []string
	for _, n := range s.Nodes {
		if !slices.Contains(has, n.ID) {
			lack = append(lack, n.ID)
		}
	}
	if len(has) == 0 || len(lack) == 0 || leader == "" {
		return v, "", errNothingToDraw
	}
	return move{group, has[rng.IntN(len(has))], lack[rng.IntN(len(lack))]}, leader, nil
}

// carryOutPlan makes a plan at the node and carries it out.
func (n *Node) carryOutPlan(ctx context.Context) (string, error) {
	plan, err := n.weir(ctx, "cluster", "plan", "--json")
	if err != nil {
		return "", err
	}
	file := filepath.Join(filepath.Dir(n.Dir), "plan.json")
	if err := os.WriteFile(file, []byte(plan), 0o600); err != nil {
		return "", err
	}
	return n.weir(ctx, "cluster", "apply", file)
}
