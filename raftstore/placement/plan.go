package placement

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Move moves the replica of a group from one node to another, which takes its place in the order of members.
type Move struct {
	Group int    `json:"group"` // counted from 0
	From  string `json:"from"`  // id of a node; "": the group gets one replica more
	To    string `json:"to"`
	Bytes int64  `json:"bytes"` // to be copied; 0: unknown
	Why   string `json:"why"`
}

// Plan returns the moves that bring a cluster closer to what it should be: groups have all their replicas, drained
// nodes have none, replicas are spread over the zones and even over the nodes, in this order. The argument drain has
// the ids of the drained nodes. A member that is no node of the cluster is drained. Any other node that is down keeps
// its replicas, because it may come back.
//
// A plan has at most one move of a group. A plan for the state after it has those that are left, until one is empty.
// It evens out nodes only if nothing else is left to do. A group is moved only while a majority of its members is up,
// which every move leaves so. A group with a member that is down is not moved for the sake of zones or evenness.
//
// If nodes cannot be drained because too few others are left, the error says so, and no moves are returned. Any other
// error names the groups that a plan leaves as they are, and why. The moves beside it are valid.
func Plan(s State, drain []string) ([]Move, error) {
	p := &planner{layout: newLayout(s), leaving: map[string]string{}, touched: make([]bool, len(s.Groups))}
	if err := p.prepare(drain); err != nil {
		return nil, err
	}
	for g := range p.Groups {
		if n := len(p.Groups[g].Members); n > p.Replicas {
			p.finish(g)
		} else if n < p.Replicas {
			p.require(g, "", fmt.Sprintf("it has %d of %d replicas", n, p.Replicas))
			p.unfinished = p.unfinished || n+1 < p.Replicas
		}
	}
	for g := range p.Groups {
		for _, id := range p.Groups[g].Members {
			if why := p.leaving[id]; why != "" {
				p.require(g, id, why)
			}
		}
	}
	for g := range p.Groups {
		p.spread(g)
	}
	may := func(g int, _, to string) bool { return p.loose(g) && p.takes(g, p.node[to]) }
	for g, from, to := p.uneven(may); from != "" && !p.unfinished; g, from, to = p.uneven(may) {
		p.add(g, from, to, fmt.Sprintf("%s has %d replicas, %s has %d", from, p.load[from], to, p.load[to]))
	}
	return p.moves, errors.Join(p.stuck...)
}

// planner is a plan in the making, and the layout after its moves.
type planner struct {
	*layout
	leaving map[string]string // why a node shall have no replica
	touched []bool            // groups that are moved, or cannot be moved
	moves   []Move
	// unfinished tells that a group lacks a replica, or has one on a node that shall have none, after the moves.
	unfinished bool
	stuck      []error
}

// prepare notes the nodes to be drained, and the groups that cannot be moved.
func (p *planner) prepare(drain []string) error {
	for _, id := range drain {
		if _, known := p.node[id]; !known {
			return fmt.Errorf("no node of the cluster has the id %q", id)
		}
		p.leaving[id] = id + " is drained"
	}
	if left := len(p.Nodes) - len(p.leaving); left < p.Replicas && len(drain) > 0 {
		return fmt.Errorf("%s cannot be drained: a group has %d replicas, and fewer other nodes are left (%d): "+
			"add nodes first", strings.Join(drain, ", "), p.Replicas, left)
	}
	for g := range p.Groups {
		members := p.Groups[g].Members
		if len(members) == 0 {
			p.leave(g, "its members are unknown")
		}
		for _, id := range members {
			if _, known := p.node[id]; !known {
				p.leaving[id] = id + " is no node of the cluster"
			}
		}
	}
	return nil
}

// leave notes why the plan does nothing about a group that is not as it should be.
func (p *planner) leave(g int, why string) {
	p.touched[g], p.unfinished = true, true
	p.stuck = append(p.stuck, fmt.Errorf("group %d: %s", g, why))
}

// add makes a move a part of the plan.
func (p *planner) add(g int, from, to, why string) {
	p.move(g, from, to)
	p.touched[g] = true
	p.moves = append(p.moves, Move{g, from, to, p.Groups[g].Bytes, why})
}

// loose reports whether a group can be moved though it does not have to.
func (p *planner) loose(g int) bool {
	return !p.touched[g] && !slices.ContainsFunc(p.Groups[g].Members, func(id string) bool { return !p.node[id].Up })
}

// takes reports whether a node can get a replica of a group that it does not have.
func (p *planner) takes(g int, n Node) bool {
	return n.Up && p.leaving[n.ID] == "" && (n.Memory == 0 || p.used[n.ID]+p.Groups[g].Bytes <= n.Memory)
}

// target returns the node that should get the replica of a group that another node has, or "".
func (p *planner) target(g int, from string) string {
	return p.best(g, from, func(n Node) []int {
		if p.takes(g, n) {
			return []int{}
		}
		return nil
	})
}

// require moves a replica that has to be moved, or adds one.
func (p *planner) require(g int, from, why string) {
	if p.touched[g] {
		p.unfinished = true
		return
	}
	voters, up := p.Votes(g)
	to := p.target(g, from)
	switch {
	case 2*up <= voters:
		p.leave(g, fmt.Sprintf("%s, but %d of its %d members are up, which is no majority", why, up, voters))
	case to == "":
		p.leave(g, why+", but each other node is down, is drained, has a replica or has too little memory for one")
	default:
		p.add(g, from, to, why)
	}
}

// finish ends a move that has added a replica: the member that the group needs least gives its replica to one that
// stays. That is a new member, unless it cannot stay itself.
func (p *planner) finish(g int) {
	group := p.Groups[g]
	why := fmt.Sprintf("it has %d replicas instead of %d", len(group.Members), p.Replicas)
	stays := func(id string) bool { return p.leaving[id] == "" && p.node[id].Up }
	need := func(id string) []int { // the least is needed least
		stay := 0
		if stays(id) {
			stay = 1
		}
		return []int{stay, -p.inZone(g, id, ""), -p.load[id]}
	}
	byNeed := slices.Clone(group.Members)
	slices.SortStableFunc(byNeed, func(a, b string) int { return slices.Compare(need(a), need(b)) })
	isNew := func(id string) bool { return slices.Contains(group.New, id) }
	from := slices.IndexFunc(byNeed, func(id string) bool { return isNew(id) && !stays(id) })
	if from < 0 {
		from = slices.IndexFunc(byNeed, func(id string) bool { return !isNew(id) })
	}
	to := slices.IndexFunc(byNeed, func(id string) bool { return isNew(id) && stays(id) })
	if to < 0 {
		to = slices.IndexFunc(byNeed, func(id string) bool {
			return id != byNeed[max(from, 0)] && stays(id) && !isNew(id)
		})
	}
	if voters, up := p.Votes(g); from < 0 || to < 0 || 2*up <= voters {
		p.leave(g, fmt.Sprintf("%s, and %d of %d that vote are up", why, up, voters))
		return
	}
	p.touched[g], p.unfinished = true, p.unfinished || len(group.Members) > p.Replicas+1
	p.moves = append(p.moves, Move{g, byNeed[from], byNeed[to], 0, why})
	gives := func(id string) bool { return id == byNeed[from] }
	p.Groups[g].Members = slices.DeleteFunc(slices.Clone(group.Members), gives)
	p.load[byNeed[from]]--
}

// spread moves a replica to a zone that has none, or fewer.
func (p *planner) spread(g int) {
	for _, from := range slices.Backward(p.Groups[g].Members) {
		to := p.target(g, from)
		a, b := p.inZone(g, from, ""), p.inZone(g, to, from)
		if p.loose(g) && to != "" && b+2 <= a {
			p.add(g, from, to, fmt.Sprintf("it has %d replicas in zone %q and %d in zone %q", a, p.node[from].Zone, b,
				p.node[to].Zone))
		}
	}
}
