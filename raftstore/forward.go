package raftstore

import (
	"context"
	"errors"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/raftstore/peer"
	"github.com/weir-project/weir/raftstore/wire"
)

// sendToLeader sends a batch to the leader and tells its callers what became of it.
func (n *Node) sendToLeader(b *batch) {
	_, leader := n.raft.LeaderWithID()
	client := n.peers.client(string(leader))
	if client == nil || b.kind == wire.Tick {
		n.queue.land(b, ErrNoLeader)
		return
	}
	while := n.forwards.to(n.ctx, leader)
	n.tasks.Go(func() { n.queue.land(b, n.forward(while, client, b)) })
}

// forward sends a batch to the leader. The outcome is unknown if the leader does not
// answer within maxAge, or when while ends first.
func (n *Node) forward(while context.Context, client *peer.Client, b *batch) error {
	method := callDecide
	if b.kind == wire.Clear {
		method = callClear
	}
	ctx, cancel := context.WithTimeout(while, n.maxAge)
	defer cancel()
	status, answer, err := client.Call(ctx, method, b.body())
	switch {
	case errors.Is(err, peer.ErrNotSent):
		return ErrTryAgain
	case err != nil:
		n.log.Debug("the leader did not answer", "because", err)
		return ErrUnknown
	case status != answered || b.kind == wire.Clear:
		return outcomeOf(status, answer)
	}
	out := b.answers()
	if err := wire.ReadDecisions(answer, out); err != nil {
		return ErrUnknown
	}
	return nil
}

// forwarded is a body of calls as the leader carries it out: what is atomic by
// itself, and all the rest as one call.
type forwarded struct {
	calls []forwardedCall
	ops   int
}

type forwardedCall struct {
	ops    []engine.Op
	from   int // of the answers
	atomic bool
}

// readForwarded reads a body. Calls that are not atomic and follow each other are
// one: they came from different connections, which have no order.
func readForwarded(body []byte) (forwarded, error) {
	var (
		d wire.Decoder
		f forwarded
	)
	d.Reset(body)
	for {
		call, more, err := d.Next()
		if err != nil || !more {
			return f, err
		}
		if last := len(f.calls) - 1; last >= 0 && !call.Atomic && !f.calls[last].atomic {
			f.calls[last].ops = append(f.calls[last].ops, call.Ops...)
		} else {
			f.calls = append(f.calls, forwardedCall{append([]engine.Op(nil), call.Ops...), f.ops, call.Atomic})
		}
		f.ops += len(call.Ops)
	}
}

func (n *Node) decideForwarded(f forwarded, out []engine.Decision) error {
	outcomes := outcome{}
	for _, c := range f.calls {
		decide := n.decide
		if c.atomic {
			decide = n.decideAtomic
		}
		outcomes.add(decide(c.ops, out[c.from:c.from+len(c.ops)], true))
	}
	return outcomes.err()
}
