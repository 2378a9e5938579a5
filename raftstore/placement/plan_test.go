package placement_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/raftstore/placement"
)

// state returns a state whose nodes are up.
func state(nodes []placement.Node, placed [][]string, replicas int) placement.State {
	s := placement.State{Replicas: replicas}
	for _, n := range nodes {
		n.Up = true
		s.Nodes = append(s.Nodes, n)
	}
	for _, members := range placed {
		s.Groups = append(s.Groups, placement.Group{Members: members, Bytes: 10})
	}
	return s
}

func placed(s placement.State) (placed [][]string) {
	for _, g := range s.Groups {
		placed = append(placed, g.Members)
	}
	return placed
}

// after returns the state after moves.
func after(s placement.State, moves []placement.Move) placement.State {
	s.Groups = slices.Clone(s.Groups)
	for _, m := range moves {
		g := &s.Groups[m.Group]
		g.Members = slices.Clone(g.Members)
		if i := slices.Index(g.Members, m.From); i >= 0 {
			g.Members[i] = m.To
		} else {
			g.Members = append(g.Members, m.To)
		}
	}
	return s
}

// upOf returns how many members of a group are up.
func upOf(s placement.State, members []string) (up int) {
	for _, n := range s.Nodes {
		if n.Up && slices.Contains(members, n.ID) {
			up++
		}
	}
	return up
}

// carryOut checks the moves of a plan, and returns the state after them.
func carryOut(t *testing.T, s placement.State, moves []placement.Move, drained []string) placement.State {
	t.Helper()
	touched := map[int]bool{}
	for _, m := range moves {
		members := s.Groups[m.Group].Members
		what := fmt.Sprintf("%+v of %v", m, members)
		require.False(t, touched[m.Group], "a second move of the group: %s", what)
		touched[m.Group] = true
		require.NotContains(t, members, m.To, what)
		require.NotContains(t, drained, m.To, what)
		require.Equal(t, 1, upOf(s, []string{m.To}), "the target is down: %s", what)
		if m.From != "" {
			require.Contains(t, members, m.From, what)
		} else {
			require.Less(t, len(members), s.Replicas, what)
		}
		require.Greater(t, 2*upOf(s, members), len(members), "no majority before: %s", what)
		then := after(s, []placement.Move{m}).Groups[m.Group].Members
		require.Greater(t, 2*upOf(s, then), len(then), "no majority after: %s", what)
		require.NotEmpty(t, m.Why)
		require.EqualValues(t, 10, m.Bytes)
	}
	return after(s, moves)
}

// rebalance plans, and carries out plans, until one is empty. It returns the last state and all moves.
func rebalance(t *testing.T, s placement.State, drained ...string) (placement.State, []placement.Move) {
	t.Helper()
	var all []placement.Move
	for range 50 {
		moves, err := placement.Plan(s, drained)
		require.NoError(t, err)
		if len(moves) == 0 {
			return s, all
		}
		s, all = carryOut(t, s, moves, drained), append(all, moves...)
	}
	require.Fail(t, "plans do not end")
	return s, all
}

// randomState returns a state with random members: some groups have too few, or members that are no nodes.
func randomState(r *rand.Rand, nodes []placement.Node, replicas int) placement.State {
	var members [][]string
	for range 1 + r.IntN(40) {
		order := r.Perm(len(nodes))[:max(1, replicas-r.IntN(8)/7)]
		// Half of the nodes have more replicas than the others.
		slices.SortFunc(order, func(a, b int) int { return a%2 - b%2 })
		var ids []string
		for _, i := range order {
			ids = append(ids, nodes[i].ID)
		}
		if replicas > 1 && r.IntN(15) == 0 {
			ids[0] = "gone"
		}
		members = append(members, ids)
	}
	return state(nodes, members, replicas)
}

func TestPlansEnd(t *testing.T) {
	r := rand.New(rand.NewPCG(43, 3))
	for range 800 {
		nodes := randomCluster(r)
		replicas := min([]int{1, 3, 5}[r.IntN(3)], len(nodes))
		s := randomState(r, nodes, replicas)
		var drained []string
		for i := range r.IntN(3) {
			if len(nodes)-i > replicas {
				drained = append(drained, nodes[i].ID)
			}
		}
		what := fmt.Sprintf("%+v drained=%v", s, drained)
		before := fmt.Sprint(s)
		moves, _ := placement.Plan(s, drained)
		require.Equal(t, before, fmt.Sprint(s), "the state was changed")
		slices.Reverse(s.Nodes)
		again, _ := placement.Plan(s, drained)
		require.Equal(t, moves, again, "the order of the nodes matters: %s", what)
		lost := func(g placement.Group) bool { return 2*upOf(s, g.Members) <= len(g.Members) }
		if slices.ContainsFunc(s.Groups, lost) {
			continue
		}
		end, _ := rebalance(t, s, drained...)

		leaves := func(n placement.Node) bool { return slices.Contains(drained, n.ID) }
		left := slices.DeleteFunc(slices.Clone(s.Nodes), leaves)
		checkSpread(t, left, placed(end), replicas, what)
	}
}

// leastMoves returns how many moves no plan can do without, if zones do not matter: one for each replica that is
// missing or on a drained node, and one for each that a node has too many of.
func leastMoves(s placement.State, drained ...string) int {
	load := map[string]int{}
	for _, n := range s.Nodes {
		if !slices.Contains(drained, n.ID) {
			load[n.ID] = 0
		}
	}
	total := s.Replicas * len(s.Groups)
	moves := total
	for _, g := range s.Groups {
		for _, id := range g.Members {
			if _, stays := load[id]; stays {
				load[id]++
				moves--
			}
		}
	}
	loads := slices.Sorted(maps.Values(load))
	slices.Reverse(loads)
	for i, n := range loads {
		if i < total%len(loads) {
			n--
		}
		moves += max(0, n-total/len(loads))
	}
	return moves
}

// TestFewMoves checks that plans for the changes that operators make have as few moves as possible.
func TestFewMoves(t *testing.T) {
	r := rand.New(rand.NewPCG(43, 4))
	for range 150 {
		sizes := [][]int{{6 + r.IntN(20)}, slices.Repeat([]int{2 + r.IntN(5)}, 3+r.IntN(2))}[r.IntN(2)]
		nodes, replicas := cluster(r, sizes...), 3
		s := state(nodes, placement.Found(nodes, 1+r.IntN(60), replicas), replicas)
		what := fmt.Sprint(sizes, " groups=", len(s.Groups))
		_, none := rebalance(t, s)
		require.Empty(t, none, "a founded cluster is even: %s", what)

		lost := s.Nodes[0]
		s.Nodes[0].Up = false
		_, none = rebalance(t, s)
		require.Empty(t, none, "a node that is down may come back: %s", what)
		s.Nodes = append(s.Nodes, placement.Node{ID: "new", Zone: lost.Zone, Up: true})
		end, moves := rebalance(t, s, lost.ID)
		require.Len(t, moves, leastMoves(s, lost.ID), "a new node in the place of one that is lost: %s", what)
		require.NotContains(t, slices.Concat(placed(end)...), lost.ID)

		s.Nodes = slices.DeleteFunc(end.Nodes, func(n placement.Node) bool { return n.ID == lost.ID })
		s.Groups = end.Groups
		for i := range sizes {
			s.Nodes = append(s.Nodes, placement.Node{ID: fmt.Sprint("more", i), Zone: fmt.Sprint("z", i), Up: true})
		}
		_, moves = rebalance(t, s)
		// With more zones than replicas one move may make room for another.
		least := leastMoves(s) + 3*max(0, len(sizes)-replicas)
		require.LessOrEqual(t, len(moves), least, "a node more in each zone: %s", what)
	}
}

func move(group int, from, to string, bytes int64, why string) placement.Move {
	return placement.Move{Group: group, From: from, To: to, Bytes: bytes, Why: why}
}

func TestPlan(t *testing.T) {
	founded := func() placement.State {
		return placement.State{Replicas: 3, Nodes: []placement.Node{
			{ID: "a", Zone: "x", Up: true}, {ID: "b", Zone: "y", Up: true}, {ID: "c", Zone: "z", Up: true},
			{ID: "d", Zone: "x", Up: true}, {ID: "e", Zone: "y", Up: true}, {ID: "f", Zone: "z", Up: true},
		}, Groups: []placement.Group{{Members: []string{"a", "b", "c"}, Bytes: 5},
			{Members: []string{"d", "e", "f"}, Bytes: 7}}}
	}
	const four = "it has 4 replicas instead of 3"
	for name, c := range map[string]struct {
		change func(s *placement.State)
		drain  []string
		moves  []placement.Move
		err    string
	}{
		"even": {},
		"down": {change: func(s *placement.State) { s.Nodes[0].Up = false }},
		"a node more": {change: func(s *placement.State) {
			s.Nodes = append(s.Nodes, placement.Node{ID: "g", Up: true})
		}},
		"drain": {drain: []string{"a"}, moves: []placement.Move{move(0, "a", "d", 5, "a is drained")}},
		"drain a node that is down": {change: func(s *placement.State) { s.Nodes[0].Up = false }, drain: []string{"a"},
			moves: []placement.Move{move(0, "a", "d", 5, "a is drained")}},
		"removed": {change: func(s *placement.State) { s.Nodes = s.Nodes[1:] },
			moves: []placement.Move{move(0, "a", "d", 5, "a is no node of the cluster")}},
		"two of a group": {drain: []string{"a", "b"}, moves: []placement.Move{move(0, "a", "d", 5, "a is drained")}},
		"two of a group, and uneven": {change: func(s *placement.State) {
			s.Groups = append(s.Groups, s.Groups[1], s.Groups[1]) // f has 3 replicas, c has 1
		}, drain: []string{"a", "b"}, moves: []placement.Move{move(0, "a", "d", 5, "a is drained")}},
		"below R": {change: func(s *placement.State) { s.Groups[1].Members = []string{"e", "f"} },
			moves: []placement.Move{move(1, "", "d", 7, "it has 2 of 3 replicas")}},
		"below R, and a drained node": {change: func(s *placement.State) { s.Groups[1].Members = []string{"e", "f"} },
			drain: []string{"a"}, moves: []placement.Move{move(1, "", "d", 7, "it has 2 of 3 replicas"),
				move(0, "a", "d", 5, "a is drained")}},
		"the zone's other node is down": {change: func(s *placement.State) { s.Nodes[3].Up = false },
			drain: []string{"a"}, moves: []placement.Move{move(0, "a", "e", 5, "a is drained")}},
		"zones": {change: func(s *placement.State) { s.Groups[0].Members = []string{"a", "b", "e"} },
			moves: []placement.Move{move(0, "e", "c", 5, `it has 2 replicas in zone "y" and 0 in zone "z"`)}},
		"zones, with a member down": {change: func(s *placement.State) {
			s.Groups[0].Members, s.Nodes[0].Up = []string{"a", "b", "e"}, false
		}},
		"uneven": {change: func(s *placement.State) { s.Groups[1].Members = []string{"a", "b", "f"} },
			moves: []placement.Move{move(0, "b", "e", 5, "b has 2 replicas, e has 0"),
				move(1, "a", "d", 7, "a has 2 replicas, d has 0")}},
		"memory": {change: func(s *placement.State) { s.Nodes[3].Memory = 11 }, drain: []string{"a"},
			moves: []placement.Move{move(0, "a", "e", 5, "a is drained")}},
		"enough memory": {change: func(s *placement.State) { s.Nodes[3].Memory = 12 }, drain: []string{"a"},
			moves: []placement.Move{move(0, "a", "d", 5, "a is drained")}},
		"memory for one": {change: func(s *placement.State) {
			s.Nodes[3].Memory, s.Groups = 12, append(s.Groups, s.Groups[0])
		}, drain: []string{"a"}, moves: []placement.Move{move(0, "a", "d", 5, "a is drained"),
			move(2, "a", "e", 5, "a is drained")}},
		"lacks two, and uneven": {change: func(s *placement.State) {
			s.Groups = append(s.Groups, s.Groups[0], s.Groups[0])
			s.Groups[1].Members = []string{"e"}
		}, moves: []placement.Move{move(1, "", "d", 7, "it has 1 of 3 replicas")}},

		"unknown": {drain: []string{"q"}, err: `no node of the cluster has the id "q"`},
		"too few": {drain: []string{"a", "b", "c", "d"}, err: "a, b, c, d cannot be drained: a group has 3 replicas, " +
			"and fewer other nodes are left (2): add nodes first"},
		"everywhere": {change: func(s *placement.State) { s.Replicas, s.Groups = 0, nil }, drain: []string{"a"},
			err: "a cannot be drained: a group has 6 replicas, and fewer other nodes are left (5): add nodes " +
				"first"},
		"no majority": {change: func(s *placement.State) { s.Nodes[0].Up, s.Nodes[1].Up = false, false },
			drain: []string{"a", "d"}, moves: []placement.Move{move(1, "d", "c", 7, "d is drained")},
			err: "group 0: a is drained, but 1 of its 3 members are up, which is no majority"},
		"no target": {change: func(s *placement.State) {
			s.Nodes[3].Up, s.Nodes[4].Up, s.Nodes[5].Up = false, false, false
		}, drain: []string{"a"}, err: "group 0: a is drained, but each other node is down, is drained, has a replica " +
			"or has too little memory for one"},
		"a move under way": {change: func(s *placement.State) { s.Groups[0].Members = []string{"a", "b", "c", "d"} },
			drain: []string{"a", "e"},
			moves: []placement.Move{move(0, "a", "d", 0, four), move(1, "e", "b", 7, "e is drained")}},
		"a new replica": {change: func(s *placement.State) {
			s.Groups[0].Members, s.Groups[0].New = []string{"a", "b", "c", "f"}, []string{"f"}
		}, moves: []placement.Move{move(0, "c", "f", 0, four), move(1, "f", "c", 7, "f has 2 replicas, c has 0")}},
		"a new replica on a node that is down": {change: func(s *placement.State) {
			s.Groups[0].Members, s.Groups[0].New, s.Nodes[5].Up = []string{"a", "b", "c", "f"}, []string{"f"}, false
		}, moves: []placement.Move{move(0, "f", "c", 0, four)}},
		"a new replica and a voter on nodes that are down": {change: func(s *placement.State) {
			s.Groups[0].Members, s.Groups[0].New = []string{"a", "b", "c", "f"}, []string{"f"}
			s.Nodes[0].Up, s.Nodes[5].Up = false, false
		}, moves: []placement.Move{move(0, "f", "c", 0, four)}},
		"a move under way without a majority": {change: func(s *placement.State) {
			s.Groups[0].Members, s.Nodes[0].Up, s.Nodes[1].Up = []string{"a", "b", "c", "d"}, false, false
		}, err: "group 0: it has 4 replicas instead of 3, and 2 of 4 that vote are up"},
		"a move under way, and uneven": {change: func(s *placement.State) {
			s.Groups[0].Members, s.Groups[1].Members = []string{"a", "b", "c", "d"}, []string{"a", "b", "f"}
		}, moves: []placement.Move{move(0, "a", "d", 0, four), move(1, "b", "e", 7, "b has 2 replicas, e has 0")}},
		"unknown members": {change: func(s *placement.State) { s.Groups[0].Members = nil }, drain: []string{"d"},
			moves: []placement.Move{move(1, "d", "a", 7, "d is drained")}, err: "group 0: its members are unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			s := founded()
			if c.change != nil {
				c.change(&s)
			}
			moves, err := placement.Plan(s, c.drain)
			require.Equal(t, c.moves, moves)
			if c.err == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, c.err)
			}
		})
	}
}

// TestHash checks what the fingerprint of a state depends on.
func TestHash(t *testing.T) {
	s := state([]placement.Node{{ID: "a", Zone: "x"}, {ID: "b", Zone: "y"}, {ID: "c"}},
		[][]string{{"a", "b"}, {"b", "a"}}, 2)
	hash := s.Hash()
	require.Regexp(t, "^[0-9a-f]{16}$", hash)
	same := func(change func(s *placement.State)) bool {
		other := state(s.Nodes, placed(s), 2)
		other.Groups[0].Members = slices.Clone(other.Groups[0].Members)
		change(&other)
		return other.Hash() == hash
	}
	require.True(t, same(func(s *placement.State) {
		slices.Reverse(s.Nodes)
		slices.Reverse(s.Groups[0].Members)
		s.Nodes[0].Up, s.Nodes[0].Memory, s.Groups[1].Bytes = false, 1, 1
	}))
	require.False(t, same(func(s *placement.State) { s.Replicas = 1 }))
	require.False(t, same(func(s *placement.State) { s.Nodes[0].ID = "d" }))
	require.False(t, same(func(s *placement.State) { s.Nodes[0].Zone = "y" }))
	require.False(t, same(func(s *placement.State) { s.Nodes = s.Nodes[1:] }))
	require.False(t, same(func(s *placement.State) { s.Groups[0].Members[1] = "c" }))
	require.False(t, same(func(s *placement.State) { s.Groups = s.Groups[1:] }))
}
