package chaos

import (
	"context"
	"time"
)

// The maximum delay of the slow link exceeds a heartbeat of the harness. Some delays therefore cost a leader its
// leadership, and others do not.
const (
	mostDelay  = 150 * time.Millisecond
	mostJitter = 100 * time.Millisecond
)

// cut injects the network fault of how for the duration of the step. At its end the bytes that the network held are
// delivered half of the time, and lost half of the time.
func (h hand) cut(ctx context.Context, how func()) error {
	broken := h.rng.IntN(2) == 0
	how()
	_ = sleep(ctx, h.lasts)
	h.Mesh.Heal(broken)
	return nil
}

// halves splits the nodes at random. At most one side has a majority.
func (h hand) halves() {
	order := h.rng.Perm(len(h.Nodes))
	at := 1 + h.rng.IntN(len(order)-1)
	h.Mesh.Split(order[:at], order[at:])
}

// oneWay cuts one direction between a node and some others. Half of the time the node is the leader.
func (h hand) oneWay() {
	node, inbound, toAll := h.leader(), h.rng.IntN(2) == 0, h.rng.IntN(2) == 0
	others := h.rng.Perm(len(h.Nodes))
	if h.rng.IntN(2) == 0 {
		node = h.anyone()
	}
	if !toAll {
		others = others[:len(others)/2+1]
	}
	h.Mesh.CutOneWay(node, inbound, others)
}

// oneWayPair cuts one direction between two nodes only. Both still reach the others.
func (h hand) oneWayPair() {
	pair := h.rng.Perm(len(h.Nodes))
	h.Mesh.CutOneWay(pair[0], false, pair[1:2])
}

func (h hand) isolate() {
	leader := h.leader()
	var others []int
	for i := range h.Nodes {
		if i != leader {
			others = append(others, i)
		}
	}
	h.Mesh.Split(others)
}

func (h hand) slow() {
	node := h.leader()
	if h.rng.IntN(2) == 0 {
		node = h.anyone()
	}
	h.Mesh.Slow(node, time.Duration(h.rng.Int64N(int64(mostDelay))), time.Duration(h.rng.Int64N(int64(mostJitter))))
}
