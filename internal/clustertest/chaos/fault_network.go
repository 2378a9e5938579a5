package chaos

import (
	"context"
	"time"
)

// The slow link: beyond a heartbeat of the harness's timings at the most, so that
// some delays cost a leader its place and some do not.
const (
	mostDelay  = 150 * time.Millisecond
	mostJitter = 100 * time.Millisecond
)

// cut does something to the network for a while. Half of the time what was held
// is delivered at the end of it, half of the time it is lost.
func (h hand) cut(ctx context.Context, how func()) error {
	broken := h.rng.IntN(2) == 0
	how()
	_ = sleep(ctx, h.lasts)
	h.Mesh.Heal(broken)
	return nil
}

// halves splits the nodes at random: a majority on one side, if any.
func (h hand) halves() {
	order := h.rng.Perm(len(h.Nodes))
	at := 1 + h.rng.IntN(len(order)-1)
	h.Mesh.Split(order[:at], order[at:])
}

// oneWay makes a node, the leader half of the time, deaf or dumb towards some
// others.
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
