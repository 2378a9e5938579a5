package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/raftstore/placement"
)

// planFile writes the plan of a cluster to a file.
func planFile(t *testing.T, c *Command) (path string, made plan) {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, (&planCmd{JSON: true}).show(&out, c))
	require.NoError(t, json.Unmarshal(out.Bytes(), &made))
	path = filepath.Join(t.TempDir(), "plan.json")
	require.NoError(t, os.WriteFile(path, out.Bytes(), 0o600))
	return path, made
}

// TestApply checks that a plan is carried out move by move, that each step is tried again while the group has no leader,
// and that a stopped command goes on.
func TestApply(t *testing.T) {
	nodes := startNodes(t, "a", "")
	node := nodes["b"]
	c := &Command{Addr: node.addr}
	spread(node, "ab", "ab", "ab", "ab")
	setUp(node, true)
	node.topo.Nodes[2].Zone = ""
	path, made := planFile(t, c)
	require.Len(t, made.Moves, 2, "c gets two replicas")
	require.NoError(t, (&applyCmd{File: path}).Run(c))
	status, err := c.AskStatus()
	require.NoError(t, err)
	for _, m := range made.Moves {
		require.NotContains(t, stateOf(&status).Groups[m.Group].Members, m.From)
		require.Contains(t, stateOf(&status).Groups[m.Group].Members, m.To)
	}
	require.Len(t, node.asked(), 2*4, "four calls for each move")
	require.NoError(t, made.fits(&status), "a command that was stopped at the end goes on")

	spread(node, "ab", "ac", "bc", "ab")
	status, err = c.AskStatus()
	require.NoError(t, err)
	require.EqualError(t, made.fits(&status), "nodes or replicas have changed since the plan was made: plan again")
	made.ClusterID = "c2"
	require.ErrorContains(t, made.fits(&status), "the plan is of cluster c2, and this is cluster c1")
	made.ClusterID, made.Moves = "c1", []placement.Move{{Group: 9, From: "a", To: "b"}}
	require.EqualError(t, made.fits(&status), "the plan moves group 9, and the cluster has 4 groups")
	require.NoError(t, os.WriteFile(path, []byte("moves: 1"), 0o600))
	require.ErrorContains(t, (&applyCmd{File: path}).Run(c), "is not a plan of weir cluster plan --json")
}

// TestAMoveThatCannotBeMade checks that an error of a step which no repetition mends ends the command.
func TestAMoveThatCannotBeMade(t *testing.T) {
	node := startNodes(t, "a", "")["b"]
	spread(node, "ab", "ab")
	node.mu.Lock()
	node.err = errors.New("node \"c\" is not up")
	node.mu.Unlock()
	var out bytes.Buffer
	err := (&moveCmd{Group: 1, From: "a", To: "c"}).run(&out, &Command{Addr: node.addr})
	require.ErrorContains(t, err, `node "c" is not up`)
	require.Equal(t, 1, strings.Count(out.String(), "a replica opens on c"), out.String())
}

// TestDrain checks that a drain ends when the node has no replicas, also if a group gets a missing one first, and that
// no node of a cluster whose replicas cannot move counts as drained.
func TestDrain(t *testing.T) {
	node := startNodes(t, "a", "")["b"]
	setUp(node, true)
	node.topo.Nodes[2].Zone = ""
	c := &Command{Addr: node.addr}
	drain := func() (string, error) {
		var out bytes.Buffer
		err := (&drainCmd{ID: "a"}).run(&out, c)
		return out.String(), err
	}
	said, err := drain()
	require.ErrorContains(t, err, "only a cluster that was founded with --replicas has replicas to move")
	require.Empty(t, said)
	for _, groups := range [][]string{{"ab", "ac"}, {"ab", "a"}} {
		spread(node, groups...)
		said, err = drain()
		require.NoError(t, err)
		require.Contains(t, said, "a has no replicas\n")
		_, state, err := c.askState()
		require.NoError(t, err)
		for _, g := range state.Groups {
			require.ElementsMatch(t, []string{"b", "c"}, g.Members)
		}
	}
}
