package raftstore

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/faults"
	"github.com/weir-project/weir/internal/guards"
	"github.com/weir-project/weir/raftstore/internal/consensus"
	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/internal/fsm"
	"github.com/weir-project/weir/raftstore/internal/queue"
	"github.com/weir-project/weir/raftstore/internal/quorum"
	"github.com/weir-project/weir/raftstore/internal/timers"
	"github.com/weir-project/weir/raftstore/wire"
)

// pipeline takes the decisions of all callers through the log: it proposes them where this node
// leads, sends them to the leader where it does not, and answers denials without the log.
type pipeline struct {
	*host
	raft       *consensus.Raft
	machine    *fsm.FSM
	queue      *queue.Queue
	confirms   *quorum.Check
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
	batch  *queue.Batch
	at     time.Time // when it was proposed
	future raft.ApplyFuture
}

// pump takes batches as they fill and sends each where it is decided. It ends when
// the queue is closed.
func (p *pipeline) pump() {
	defer close(p.proposals)
	for b := p.queue.Next(); b != nil; b = p.queue.Next() {
		p.awaitLeader(b)
		switch r := p.leadership.current.Load(); {
		case r != nil:
			p.reach(faults.BeforeProposal)
			p.propose(b, r)
		case b.Foreign:
			guards.ForeignCall.Hit()
			p.queue.Complete(b, failure.ErrTryAgain)
		default:
			p.reach(faults.BeforeForward)
			p.sendToLeader(b)
		}
	}
}

// awaitLeader holds a batch for a moment while there is no leader: long enough for
// leadership to be handed over without anybody noticing more than a delay.
func (p *pipeline) awaitLeader(b *queue.Batch) {
	for p.leadership.current.Load() == nil && p.peers.client(p.raft.Leader()) == nil && time.Since(b.Born) < p.options.Heartbeat/2 && !p.closing() {
		time.Sleep(timers.LeaderlessPause)
	}
}

// propose stamps a batch and makes it an entry of the log. The Raft library takes
// entries in order, and as many as may be under way fit its queue, so this does not
// wait for it.
func (p *pipeline) propose(b *queue.Batch, r *leaderTerm) {
	p.queue.Coalesce(b)
	p.admitMemory(b, r)
	if b.Kind == wire.Tick {
		b.Data = append(b.Data, p.leadership.noteWalls(r)...)
	}
	p.proposals <- proposal{b, time.Now(), p.apply(b, r)}
}

// apply hands an entry to the Raft library.
func (p *pipeline) apply(b *queue.Batch, r *leaderTerm) raft.ApplyFuture {
	h := wire.Header{Kind: b.Kind, Format: b.Format, Term: r.term, Nonce: b.Nonce, At: p.leadership.stampOf(b, r)}
	h.CheckIndex, h.CheckHash = p.machine.Check()
	h.Put(b.Data)
	p.leadership.lastEntry.Store(int64(p.uptime()))
	if p.faults.Has(faults.EarlyReply) {
		p.replyEarly(b, h.At)
	}
	return p.raft.Apply(b.Data, 0)
}

// completeProposals tells the callers of each entry, in the order of the log.
func (p *pipeline) completeProposals() {
	for sent := range p.proposals {
		said := p.raft.Await(sent.future)
		p.leadership.handover.saw(said)
		p.evictions.completed(sent.batch)
		err := verdict(said)
		if err != nil {
			p.log.Debug("an entry has no answer", "raft", said, "so", err)
		}
		if said == nil {
			err, _ = sent.future.Response().(error) // void, where it is one
		}
		p.queue.Complete(sent.batch, err)
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
	p.queue.Expire(p.maxAge)
	p.confirms.Expire(p.maxAge)
}

// replyEarly is a fault: it answers before the entry is committed.
func (p *pipeline) replyEarly(b *queue.Batch, at engine.Stamp) {
	var d wire.Decoder
	d.Reset(b.Body())
	var out []engine.Decision
	for call, more, err := d.Next(); more && err == nil; call, more, err = d.Next() {
		for i := range call.Ops {
			call.Ops[i].Dry = call.Ops[i].Code == engine.OpTake
		}
		part := make([]engine.Decision, len(call.Ops))
		p.machine.Table.Load().Decide(at, call.Ops, part)
		out = append(out, part...)
	}
	b.Out = out
	b.Complete(nil)
}
