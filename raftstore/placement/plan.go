package placement

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Move moves the replica of a group from one node to another. The new one takes the place of the old one in the order
// of preference.
type Move struct {
	Group int    `json:"group"` // counted from 0
	From  string `json:"from"`  // id of a node; "": the group gets one replica more, the last in its order
	To    string `json:"to"`
	Bytes int64  `json:"bytes"` // to be copied; 0: unknown
	Why   string `json:"why"`
}

// Options are what an operator wants of a plan.
type Options struct {
	Drain []string // ids of nodes that shall have no replica
}

// Plan returns the moves that bring a cluster closer to what it should be: groups have all their replicas, drained nodes
// have none, replicas are spread over the zones and even over the nodes, in this order. A member that is no node of the
// cluster is drained. Any other node that is down keeps its replicas, because it may come back.
//
// A plan has at most one move of a group. A plan for the state after it has those that are left, until one is empty. It
// evens out nodes only if nothing else is left to do. A group is moved only while a majority of its members is up, which
// every move leaves so. A group with a member that is down is not moved for the sake of zones or evenness.
//
// If nodes cannot be drained because too few others are left, the error says so, and no moves are returned. Any other
// error names the groups that a plan leaves as they are, and why. The moves beside it are valid.
func Plan(s State, o Options) ([]Move, error) {
	p, err := newPlanner(&s, &o)
	if err != nil {
		return nil, err
	}
	p.fill()
	p.drain()
	p.spread()
	if !p.unfinished {
		p.level(p.pick, func(g, from, to int, ends, had [2]int) {
			p.move(g, from, to, fmt.Sprintf("%s has %d replicas, %s has %d", p.nodes[ends[0]].ID, had[0],
				p.nodes[ends[1]].ID, had[1]))
		})
	}
	return p.moves, errors.Join(p.stuck...)
}

// planner is a plan in the making, and the placement after its moves.
type planner struct {
	*layout
	nodes    []Node // the nodes of the cluster, then the members that are none
	known    int    // how many nodes the cluster has
	replicas int    // that each group shall have
	drained  []bool
	bytes    []int64 // of each group
	used     []int64 // bytes that the replicas of each node take
	led      []int   // the groups whose preferred leader a node is
	touched  []bool  // the groups that are moved, or that cannot be moved
	moves    []Move
	// unfinished tells that a group lacks a replica, or is on a drained node, after the moves. stuck says why.
	unfinished bool
	stuck      []error
}

func newPlanner(s *State, o *Options) (*planner, error) {
	p := &planner{nodes: inOrder(s.Nodes), known: len(s.Nodes), replicas: s.Replicas}
	if p.replicas == 0 || p.replicas > len(p.nodes) {
		p.replicas = len(p.nodes)
	}
	number := map[string]int{}
	for i, n := range p.nodes {
		number[n.ID] = i
	}
	p.drained = make([]bool, len(p.nodes))
	left := len(p.nodes)
	for _, id := range o.Drain {
		i, known := number[id]
		if !known {
			return nil, fmt.Errorf("no node of the cluster has the id %q", id)
		}
		if !p.drained[i] {
			p.drained[i] = true
			left--
		}
	}
	if left < p.replicas && len(o.Drain) > 0 {
		return nil, fmt.Errorf("%s cannot be drained: a group has %d replicas, and %d other nodes are left: add nodes "+
			"first", strings.Join(o.Drain, ", "), p.replicas, left)
	}
	for _, g := range s.Groups {
		for _, id := range g.Members {
			if _, known := number[id]; !known {
				number[id] = len(p.nodes)
				p.nodes = append(p.nodes, Node{ID: id})
				p.drained = append(p.drained, true)
			}
		}
	}
	p.layout, p.touched = newLayout(p.nodes, len(s.Groups)), make([]bool, len(s.Groups))
	p.used, p.led = make([]int64, len(p.nodes)), make([]int, len(p.nodes))
	for g, group := range s.Groups {
		p.bytes = append(p.bytes, group.Bytes)
		for _, id := range group.Members {
			p.add(g, number[id])
			p.used[number[id]] += group.Bytes
		}
		switch n := len(group.Members); {
		case n == 0:
			p.leave(g, "its members are unknown")
		case n > p.replicas:
			p.leave(g, fmt.Sprintf("it has %d replicas instead of %d: end the move that added one", n, p.replicas))
		}
		if len(group.Members) > 0 {
			p.led[p.groups[g][0]]++
		}
	}
	return p, nil
}

// leave notes why the plan does nothing about a group that is not as it should be.
func (p *planner) leave(g int, why string) {
	p.touched[g], p.unfinished = true, true
	p.stuck = append(p.stuck, fmt.Errorf("group %d: %s", g, why))
}

// move makes a move a part of the plan. from may be none.
func (p *planner) move(g, from, to int, why string) {
	m := Move{Group: g, To: p.nodes[to].ID, Bytes: p.bytes[g], Why: why}
	p.used[to] += p.bytes[g]
	if from == none {
		p.add(g, to)
	} else {
		m.From = p.nodes[from].ID
		p.used[from] -= p.bytes[g]
		if p.groups[g][0] == from {
			p.led[from]--
			p.led[to]++
		}
		p.replace(g, from, to)
	}
	p.touched[g] = true
	p.moves = append(p.moves, m)
}

// takes reports whether a node can get a replica of a group that it does not have.
func (p *planner) takes(g, to int) bool {
	n := &p.nodes[to]
	return n.Up && !p.drained[to] && (n.Memory == 0 || p.used[to]+p.bytes[g] <= n.Memory)
}

// target returns the node that should get a replica of a group in the place of one on the node from, or none.
func (p *planner) target(g, from int) int {
	return p.best(g, from, func(to int) []int {
		if !p.takes(g, to) {
			return nil
		}
		if p.groups[g][0] == from {
			return []int{p.load[to], p.led[to]}
		}
		return []int{p.load[to]}
	})
}

// require moves a replica that has to be moved.
func (p *planner) require(g, from int, why string) {
	if p.touched[g] {
		p.unfinished = true
		return
	}
	members, up := p.groups[g], p.up(g)
	to := p.target(g, from)
	switch {
	case 2*up <= len(members):
		p.leave(g, fmt.Sprintf("%s, but %d of its %d members are up, which is no majority", why, up, len(members)))
	case to == none:
		p.leave(g, why+", but each other node is down, is drained, has a replica or has too little memory for one")
	default:
		p.move(g, from, to, why)
	}
}

// fill adds replicas to the groups that have too few.
func (p *planner) fill() {
	for g, members := range p.groups {
		for n := len(members); n > 0 && n < p.replicas; n++ {
			p.require(g, none, fmt.Sprintf("it has %d of %d replicas", len(members), p.replicas))
		}
	}
}

// drain moves replicas away from drained nodes.
func (p *planner) drain() {
	for g := range p.groups {
		for _, i := range slices.Clone(p.groups[g]) {
			switch {
			case i >= p.known:
				p.require(g, i, p.nodes[i].ID+" is no node of the cluster")
			case p.drained[i]:
				p.require(g, i, p.nodes[i].ID+" is drained")
			}
		}
	}
}

// spread moves replicas to zones that have none, or fewer.
func (p *planner) spread() {
	for g, members := range p.groups {
		if !p.loose(g) {
			continue
		}
		k := least(len(members), func(k int) []int {
			i := members[k]
			return []int{-p.inZone(g, p.zone[i], none), -p.load[i], -k} // the leader last
		})
		from := members[k]
		to := p.target(g, from)
		if to == none {
			continue
		}
		a, b := p.inZone(g, p.zone[from], none), p.inZone(g, p.zone[to], none)
		if b+2 <= a {
			p.move(g, from, to, fmt.Sprintf("it has %d replicas in zone %q and %d in zone %q", a, p.nodes[from].Zone, b,
				p.nodes[to].Zone))
		}
	}
}

// loose reports whether a group can be moved though it does not have to.
func (p *planner) loose(g int) bool { return !p.touched[g] && p.up(g) == len(p.groups[g]) }

// up returns how many members of a group are up.
func (p *planner) up(g int) (n int) {
	for _, i := range p.groups[g] {
		if p.nodes[i].Up {
			n++
		}
	}
	return n
}

// pick chooses a group whose replica can be moved to even out the nodes. It prefers one whose leader moves with it if
// that makes the leaders more even, and otherwise one whose leader does not.
func (p *planner) pick(of []int, from, to int) int {
	return least(len(of), func(i int) []int {
		g := of[i]
		if !p.loose(g) || !p.takes(g, to) || !p.can(g, from, to) {
			return nil
		}
		leads, should := p.groups[g][0] == from, p.led[from] >= p.led[to]+2
		if leads == should {
			return []int{0}
		}
		return []int{1}
	})
}
