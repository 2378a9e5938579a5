package raftstore

import (
	"errors"
	"time"

	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/raftstore/wire"
)

// proposal is a batch on its way through the log.
type proposal struct {
	batch  *batch
	at     time.Time // when it was proposed
	future raft.ApplyFuture
}

// pump takes batches as they fill and sends each where it is decided. It ends when
// the queue is closed.
func (n *Node) pump() {
	defer close(n.proposals)
	for b := n.queue.next(); b != nil; b = n.queue.next() {
		n.awaitLeader(b)
		switch r := n.reign.Load(); {
		case r != nil:
			n.reach(BeforeProposal)
			n.propose(b, r)
		case b.foreign:
			guardForeignCall.Hit()
			n.queue.land(b, ErrTryAgain)
		default:
			n.reach(BeforeForward)
			n.sendToLeader(b)
		}
	}
}

// awaitLeader holds a batch for a moment while there is no leader: long enough for
// leadership to be handed over without anybody noticing more than a delay.
func (n *Node) awaitLeader(b *batch) {
	for n.reign.Load() == nil && n.leaderClient() == nil && time.Since(b.born) < n.options.Heartbeat/2 && !n.closing() {
		time.Sleep(leaderlessPause)
	}
}

// propose stamps a batch and makes it an entry of the log. The Raft library takes
// entries in order, and as many as may be under way fit its queue, so this does not
// wait for it.
func (n *Node) propose(b *batch, r *reign) {
	n.queue.board(b)
	n.makeRoom(b, r)
	if b.kind == wire.Tick {
		b.data = append(b.data, n.noteWalls(r)...)
	}
	n.proposals <- proposal{b, time.Now(), n.apply(b, r)}
}

// apply hands an entry to the Raft library.
func (n *Node) apply(b *batch, r *reign) raft.ApplyFuture {
	h := wire.Header{Kind: b.kind, Format: b.format, Term: r.term, Nonce: b.nonce, At: n.stampOf(b, r)}
	h.CheckIndex, h.CheckHash = n.machine.check()
	h.Put(b.data)
	n.lastEntry.Store(int64(n.uptime()))
	if n.faults.EarlyReply {
		n.replyEarly(b, h.At)
	}
	return n.raft.Apply(b.data, 0)
}

// settle tells the callers of each entry, in the order of the log.
func (n *Node) settle() {
	for p := range n.proposals {
		said := n.await(p.future)
		n.handover.saw(said)
		n.evictions.land(p.batch)
		err := verdict(said)
		if err != nil {
			n.log.Debug("an entry has no answer", "raft", said, "so", err)
		}
		if said == nil {
			err, _ = p.future.Response().(error) // void, where it is one
		}
		n.queue.land(p.batch, err)
		n.told(p, err)
	}
}

// verdict translates what the Raft library says of a proposal.
func verdict(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrEnqueueTimeout), errors.Is(err, raft.ErrLeadershipTransferInProgress):
		return ErrTryAgain // refused before it was in any log
	default:
		return ErrUnknown
	}
}

// expire ends waits that have become too long.
func (n *Node) expire() {
	n.queue.expire(n.maxAge)
	n.confirms.expire(n.maxAge)
}

// replyEarly is a fault: it answers before the entry is committed.
func (n *Node) replyEarly(b *batch, at engine.Stamp) {
	var d wire.Decoder
	d.Reset(b.body())
	var out []engine.Decision
	for call, more, err := d.Next(); more && err == nil; call, more, err = d.Next() {
		for i := range call.Ops {
			call.Ops[i].Dry = call.Ops[i].Code == engine.OpTake
		}
		part := make([]engine.Decision, len(call.Ops))
		n.machine.table.Load().Decide(at, call.Ops, part)
		out = append(out, part...)
	}
	b.out = out
	b.settle(nil)
}
