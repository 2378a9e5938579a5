package raftstore

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/faults"
	"github.com/weir-project/weir/internal/guards"
	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/wire"
)

// pipeline takes the decisions of all callers through the log: it proposes them where this node
// leads, sends them to the leader where it does not, and answers denials without the log.
type pipeline struct {
	*host
	raft       *consensus
	machine    *machine
	queue      *queue
	confirms   *quorumCheck
	leadership *leadership
	reads      *reads
	format     *format
	disputed   *atomic.Bool // a divergence check is under way

	proposals     chan proposal
	denials       denials
	evictions     *evictions
	forwards      forwards
	answering     atomic.Int64 // batches of other nodes that have no answer yet
	lastForwarded atomic.Int64 // uptime at the last answer to one
	late          atomic.Int64 // answers turned into ErrUnknown because they came late
}

// proposal is a batch on its way through the log.
type proposal struct {
	batch  *batch
	at     time.Time // when it was proposed
	future raft.ApplyFuture
}

// pump takes batches as they fill and sends each where it is decided. It ends when
// the queue is closed.
func (p *pipeline) pump() {
	defer close(p.proposals)
	for b := p.queue.next(); b != nil; b = p.queue.next() {
		p.awaitLeader(b)
		switch r := p.leadership.current.Load(); {
		case r != nil:
			p.reach(faults.BeforeProposal)
			p.propose(b, r)
		case b.foreign:
			guards.ForeignCall.Hit()
			p.queue.complete(b, failure.ErrTryAgain)
		default:
			p.reach(faults.BeforeForward)
			p.sendToLeader(b)
		}
	}
}

// awaitLeader holds a batch for a moment while there is no leader: long enough for
// leadership to be handed over without anybody noticing more than a delay.
func (p *pipeline) awaitLeader(b *batch) {
	for p.leadership.current.Load() == nil && p.peers.client(p.raft.leader()) == nil && time.Since(b.born) < p.options.Heartbeat/2 && !p.closing() {
		time.Sleep(leaderlessPause)
	}
}

// propose stamps a batch and makes it an entry of the log. The Raft library takes
// entries in order, and as many as may be under way fit its queue, so this does not
// wait for it.
func (p *pipeline) propose(b *batch, r *leaderTerm) {
	p.queue.coalesce(b)
	p.admitMemory(b, r)
	if b.kind == wire.Tick {
		b.data = append(b.data, p.leadership.noteWalls(r)...)
	}
	p.proposals <- proposal{b, time.Now(), p.apply(b, r)}
}

// apply hands an entry to the Raft library.
func (p *pipeline) apply(b *batch, r *leaderTerm) raft.ApplyFuture {
	h := wire.Header{Kind: b.kind, Format: b.format, Term: r.term, Nonce: b.nonce, At: p.leadership.stampOf(b, r)}
	h.CheckIndex, h.CheckHash = p.machine.check()
	h.Put(b.data)
	p.leadership.lastEntry.Store(int64(p.uptime()))
	if p.faults.Has(faults.EarlyReply) {
		p.replyEarly(b, h.At)
	}
	return p.raft.Apply(b.data, 0)
}

// completeProposals tells the callers of each entry, in the order of the log.
func (p *pipeline) completeProposals() {
	for sent := range p.proposals {
		said := p.raft.await(sent.future)
		p.leadership.handover.saw(said)
		p.evictions.completed(sent.batch)
		err := verdict(said)
		if err != nil {
			p.log.Debug("an entry has no answer", "raft", said, "so", err)
		}
		if said == nil {
			err, _ = sent.future.Response().(error) // void, where it is one
		}
		p.queue.complete(sent.batch, err)
		p.traceEntry(sent, err)
	}
}

// verdict translates what the Raft library says of a proposal.
func verdict(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrEnqueueTimeout), errors.Is(err, raft.ErrLeadershipTransferInProgress):
		return failure.ErrTryAgain // refused before it was in any log
	default:
		return failure.ErrUnknown
	}
}

// expire ends waits that have become too long.
func (p *pipeline) expire() {
	p.queue.expire(p.maxAge)
	p.confirms.expire(p.maxAge)
}

// replyEarly is a fault: it answers before the entry is committed.
func (p *pipeline) replyEarly(b *batch, at engine.Stamp) {
	var d wire.Decoder
	d.Reset(b.body())
	var out []engine.Decision
	for call, more, err := d.Next(); more && err == nil; call, more, err = d.Next() {
		for i := range call.Ops {
			call.Ops[i].Dry = call.Ops[i].Code == engine.OpTake
		}
		part := make([]engine.Decision, len(call.Ops))
		p.machine.table.Load().Decide(at, call.Ops, part)
		out = append(out, part...)
	}
	b.out = out
	b.complete(nil)
}
