package cluster

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine/hashslot"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore/placement"
)

// spread puts the groups of a cluster of the nodes a, b and c on the nodes with these letters, one replica less than
// there are nodes.
func spread(n *clusterNode, groups ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.topo.Replicas, n.topo.Groups = 2, nil
	for g, letters := range groups {
		group := limiter.Group{Slots: hashslot.OfGroup(g, len(groups)), Leader: letters[:1]}
		for _, id := range letters {
			group.Members = append(group.Members, limiter.GroupMember{ID: string(id), Voter: true})
		}
		n.topo.Groups = append(n.topo.Groups, group)
	}
}

// setUp says whether c is up, and that it is in another zone than the others.
func setUp(n *clusterNode, up bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.topo.Nodes[2].Up, n.topo.Nodes[2].Zone = up, "other"
}

func TestClusterPlan(t *testing.T) {
	nodes := startNodes(t, "a", "")
	ask := &Command{Addr: nodes["b"].addr}
	show := func(p planCmd) (said string, err error) {
		var out bytes.Buffer
		err = p.show(&out, ask)
		lines := strings.Split(out.String(), "\n")
		for i, line := range lines {
			lines[i] = strings.Join(strings.Fields(line), " ")
		}
		return strings.Join(lines, "\n"), err
	}
	_, err := show(planCmd{})
	require.ErrorContains(t, err, "only a cluster that was founded with --replicas has replicas to move")

	spread(nodes["b"], "ac", "bc", "ac")
	setUp(nodes["b"], true)
	said, err := show(planCmd{})
	require.NoError(t, err)
	require.Equal(t, "nothing to move\n", said)

	spread(nodes["b"], "ac", "bc", "a")
	said, err = show(planCmd{})
	require.NoError(t, err)
	require.Regexp(t, `^GROUP FROM TO SIZE WHY
2 - c \d+\.\dkb it has 1 of 2 replicas

moves: 1, size: about \d+\.\dkb\. Nothing was changed\. Plan again after them\.
$`, said)

	said, err = show(planCmd{Drain: []string{"a"}})
	require.NoError(t, err)
	require.Regexp(t, `2 - c \S+ it has 1 of 2 replicas\n0 a b \S+ a is drained\n\nmoves: 2, `, said)
	said, err = show(planCmd{Drain: []string{"a", "b"}})
	require.EqualError(t, err, "a, b cannot be drained: a group has 2 replicas, and fewer other nodes are left (1): "+
		"add nodes first")
	require.Empty(t, said)

	setUp(nodes["b"], false)
	said, err = show(planCmd{Drain: []string{"a"}})
	require.EqualError(t, err, "group 0: a is drained, but 1 of its 2 members are up, which is no majority")
	require.Contains(t, said, "2 - b ", "the rest of the plan is shown")

	setUp(nodes["b"], true)
	var out bytes.Buffer
	require.NoError(t, (&planCmd{JSON: true}).show(&out, ask))
	var read plan
	require.NoError(t, json.Unmarshal(out.Bytes(), &read))
	require.Equal(t, "c1", read.ClusterID)
	status, err := ask.AskStatus()
	require.NoError(t, err)
	require.Equal(t, stateOf(&status).Hash(), read.State)
	require.Len(t, read.Moves, 1)
	require.Positive(t, read.Moves[0].Bytes)
	read.Moves[0].Bytes = 0
	require.Equal(t, placement.Move{Group: 2, To: "c", Why: "it has 1 of 2 replicas"}, read.Moves[0])

	spread(nodes["b"], "ac", "bc", "ac")
	out.Reset()
	require.NoError(t, (&planCmd{JSON: true}).show(&out, ask))
	require.Contains(t, out.String(), `"moves": []`)
	require.Empty(t, nodes["a"].asked(), "a plan changes nothing")
	require.Empty(t, nodes["b"].asked(), "a plan changes nothing")
}

func TestNumberOfInfo(t *testing.T) {
	const info = "# Memory\r\nused_memory:1\r\nmaxmemory_human:2M\r\nmaxmemory:2097152\r\n"
	require.EqualValues(t, 2097152, number(info, "maxmemory"))
	require.Zero(t, number(info, "used_memory_dataset"))
}

// TestWarnings checks what a plan tells that no move mends. A member that does not vote yet is no part of a majority.
func TestWarnings(t *testing.T) {
	warned := func(change func(s *placement.State)) string {
		s := placement.State{Replicas: 3,
			Groups: []placement.Group{{Members: []string{"a", "b", "c", "d"}, New: []string{"d"}}}}
		for _, id := range s.Groups[0].Members {
			s.Nodes = append(s.Nodes, placement.Node{ID: id, Zone: "z", Up: true})
		}
		change(&s)
		var out bytes.Buffer
		warn(&out, &s)
		return out.String()
	}
	require.Empty(t, warned(func(s *placement.State) { s.Nodes[2].Up, s.Nodes[3].Up = false, false }))
	require.Equal(t, "group 0 decides nothing: 1 of its 3 members are up, which is no majority\n",
		warned(func(s *placement.State) { s.Nodes[1].Up, s.Nodes[2].Up = false, false }))
	require.Equal(t, "b has no zone, and others have one: restart it with --zone\n",
		warned(func(s *placement.State) { s.Nodes[1].Zone = "" }))
	require.Empty(t, warned(func(s *placement.State) {
		for i := range s.Nodes {
			s.Nodes[i].Zone = ""
		}
	}))
}
