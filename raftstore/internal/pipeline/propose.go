package pipeline

import (
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/faults"
	"github.com/weir-project/weir/internal/guards"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore/internal/budget"
	"github.com/weir-project/weir/raftstore/internal/consensus"
	"github.com/weir-project/weir/raftstore/internal/leadership"
	"github.com/weir-project/weir/raftstore/internal/queue"
	"github.com/weir-project/weir/raftstore/internal/timers"
	"github.com/weir-project/weir/raftstore/wire"
)

// Pipeline takes the decisions of all callers through the log. The leader proposes them, and a follower sends them to
// the leader. The leader answers denials without the log.
type Pipeline struct {
	Config
	Memory *budget.Share // of the group, until Memory.Leave

	Proposals     chan Proposal
	denials       denials
	evictions     *evictions
	evicting      timers.Single
	telling       timers.Single // tellEnds
	forwards      forwards
	Answering     atomic.Int64 // batches of other nodes that have no answer yet
	lastForwarded atomic.Int64 // uptime at the last answer to another node
	Late          atomic.Int64 // answers that became ErrUnknownOutcome because they were late
	// Entries and EntryOps count the entries with operations that this node proposed and applied, and their operations.
	Entries, EntryOps atomic.Int64
}

// Proposal is a batch on its way through the log.
type Proposal struct {
	Batch  *queue.Batch
	at     time.Time // when it was proposed
	Future raft.ApplyFuture
}

// Pump takes batches from the queue, and proposes each or sends it to the leader. It ends when the queue is closed.
func (p *Pipeline) Pump() {
	defer close(p.Proposals)
	for b := p.Queue.Next(); b != nil; b = p.Queue.Next() {
		p.awaitLeader(b)
		switch r := p.Leadership.Current.Load(); {
		case r != nil:
			p.Reach(faults.BeforeProposal)
			p.propose(b, r)
		case b.Foreign:
			guards.ForeignCall.Hit()
			p.Queue.Complete(b, limiter.ErrTryAgain)
		default:
			p.Reach(faults.BeforeForward)
			p.sendToLeader(b)
		}
	}
}

// awaitLeader holds a batch while no leader is known, at most until the batch is half a heartbeat timeout old. So
// callers notice only a delay when leadership is transferred.
func (p *Pipeline) awaitLeader(b *queue.Batch) {
	for p.Leadership.Current.Load() == nil && p.Peers.Client(p.Raft.Leader()) == nil &&
		time.Since(b.Born) < p.Heartbeat/2 && !p.Life.Closing() {
		time.Sleep(timers.LeaderlessPause)
	}
}

// propose stamps a batch and proposes it as a log entry. It does not wait for the Raft library, whose queue holds as
// many entries as the in-flight window.
func (p *Pipeline) propose(b *queue.Batch, r *leadership.Term) {
	p.Queue.Coalesce(b)
	p.admitMemory(b, r)
	if b.Kind == wire.Tick {
		b.Data = append(b.Data, p.Leadership.NoteWalls(r)...)
	}
	p.Proposals <- Proposal{b, time.Now(), p.apply(b, r)}
}

// apply hands an entry to the Raft library.
func (p *Pipeline) apply(b *queue.Batch, r *leadership.Term) raft.ApplyFuture {
	h := wire.Header{Kind: b.Kind, Format: p.Format.Of(b.Forms), Term: r.Number, Nonce: b.Nonce,
		At: p.Leadership.StampOf(b, r)}
	h.CheckIndex, h.CheckHash = p.FSM.LastHistory()
	h.Put(b.Data)
	p.Leadership.LastEntry.Store(int64(p.Life.Uptime()))
	if p.Faults.Has(faults.EarlyReply) {
		p.replyEarly(b, h.At)
	}
	return p.Raft.Apply(b.Entry(), 0)
}

// CompleteProposals completes the batch of each proposal, in the order of the log.
func (p *Pipeline) CompleteProposals() {
	for sent := range p.Proposals {
		said := p.Raft.Await(sent.Future)
		p.Leadership.Handover.Observe(said, p.Raft.CurrentTerm())
		p.evictions.add(-sent.Batch.Growth, -sent.Batch.Evicts)
		err := consensus.Outcome(said)
		if err != nil {
			p.Log.Debug("an entry got no answer", "raft", said, "so", err)
		}
		if said == nil {
			err, _ = sent.Future.Response().(error) // the FSM returns an error if the entry has no effect
		}
		if err == nil && sent.Batch.Ops > 0 {
			p.Entries.Add(1)
			p.EntryOps.Add(int64(sent.Batch.Ops))
		}
		p.Queue.Complete(sent.Batch, err)
		if p.OnEntry != nil {
			p.traceEntry(sent, err)
		}
	}
}

// Expire ends waits that are longer than MaxAge.
func (p *Pipeline) Expire() {
	p.Queue.Expire(p.MaxAge)
	p.Confirms.Expire(p.MaxAge)
}

// replyEarly injects a fault: it answers before the entry is committed.
func (p *Pipeline) replyEarly(b *queue.Batch, at engine.Stamp) {
	var d wire.Decoder
	d.Reset(b.Body())
	var out []engine.Decision
	for call, more, err := d.Next(); more && err == nil; call, more, err = d.Next() {
		for i := range call.Ops {
			call.Ops[i].Dry = call.Ops[i].Code == engine.OpTake
		}
		part := make([]engine.Decision, len(call.Ops))
		p.FSM.Table.Load().Decide(at, call.Ops, part)
		out = append(out, part...)
	}
	b.Out = out
	b.Complete(nil)
}
