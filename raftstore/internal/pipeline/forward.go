package pipeline

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore/internal/calls"
	"github.com/weir-project/weir/raftstore/internal/queue"
	"github.com/weir-project/weir/raftstore/internal/timers"
	"github.com/weir-project/weir/raftstore/peer"
	"github.com/weir-project/weir/raftstore/wire"
)

const (
	// QuietFor is how long no other node must have forwarded a batch before a former leader closes its connections.
	// maxQuietWait bounds the wait for such a pause.
	QuietFor, maxQuietWait = 100 * time.Millisecond, time.Second
	// deposedFraction divides the heartbeat timeout: calls to a leader may go on for a quarter of that time after
	// another node leads. Answers may still be on their way.
	deposedFraction = 4
)

// sendToLeader sends a batch to the leader and completes it with the outcome.
func (p *Pipeline) sendToLeader(b *queue.Batch) {
	_, leader := p.Raft.LeaderWithID()
	client := p.Peers.Client(string(leader))
	if client == nil || b.Kind == wire.Tick {
		p.Queue.Complete(b, limiter.ErrClusterDown)
		return
	}
	while := p.forwards.to(p.Life.Ctx, leader)
	p.Life.Tasks.Go(func() { p.Queue.Complete(b, p.forward(while, client, b)) })
}

// forward sends a batch to the leader. The outcome is unknown if the leader does not answer within MaxAge, or if
// while ends first.
func (p *Pipeline) forward(while context.Context, client *peer.Client, b *queue.Batch) error {
	ctx, cancel := context.WithTimeout(while, p.MaxAge)
	defer cancel()
	return Forward(b, func(method byte) (byte, []byte, error) {
		status, answer, err := client.Call(ctx, method, b.Body())
		if err != nil {
			p.Log.Debug("the leader did not answer", "because", err)
		}
		return status, answer, err
	})
}

// Forward sends a batch by a call to another node, and takes the answers into the batch.
func Forward(b *queue.Batch, call func(method byte) (status byte, answer []byte, err error)) error {
	method := calls.Decide
	if b.Kind == wire.Clear {
		method = calls.Clear
	}
	status, answer, err := call(method)
	switch {
	case errors.Is(err, peer.ErrNotSent):
		return limiter.ErrTryAgain
	case err != nil:
		return limiter.ErrUnknownOutcome
	case status != calls.Answered || b.Kind == wire.Clear:
		return calls.OutcomeOf(status, answer)
	}
	out := b.Answers()
	if err := wire.ReadDecisions(answer, out); err != nil {
		return limiter.ErrUnknownOutcome
	}
	return nil
}

// forwarded is a forwarded body as the leader carries it out: each atomic call by itself, and adjacent other calls
// merged. Its memory is used again.
type forwarded struct {
	decoder wire.Decoder
	calls   []forwardedCall
	ops     []engine.Op // of all calls
	out     []engine.Decision
}

// forwardedCall has the operations [from, end) of a forwarded body.
type forwardedCall struct {
	from, end int
	atomic    bool
}

var forwardedPool = sync.Pool{New: func() any { return new(forwarded) }}

// maxPooledOps bounds the memory of a forwarded body that is used again. A follower forwards an entry at once, and two
// batches can share an entry.
const maxPooledOps = 2 * queue.MaxEntryOps

// release leaves the memory for another body.
func (f *forwarded) release() {
	if cap(f.ops) <= maxPooledOps {
		forwardedPool.Put(f)
	}
}

// read decodes a body. It merges adjacent calls that are not atomic: they came from different connections, which have
// no order.
func (f *forwarded) read(body []byte) error {
	f.calls, f.ops = f.calls[:0], f.ops[:0]
	f.decoder.Reset(body)
	for {
		from := len(f.ops)
		var atomic, more bool
		var err error
		if f.ops, atomic, more, err = f.decoder.Append(f.ops); err != nil || !more {
			return err
		}
		if last := len(f.calls) - 1; last >= 0 && !atomic && !f.calls[last].atomic {
			f.calls[last].end = len(f.ops)
		} else {
			f.calls = append(f.calls, forwardedCall{from, len(f.ops), atomic})
		}
	}
}

// answers returns the slice for the answers.
func (f *forwarded) answers() []engine.Decision {
	f.out = slices.Grow(f.out[:0], len(f.ops))[:len(f.ops)]
	clear(f.out)
	return f.out
}

func (p *Pipeline) decideForwarded(f *forwarded, body []byte) ([]engine.Decision, error) {
	if forms := wire.FormsOf(f.ops); p.mayLog(f, body, forms) {
		start := time.Now()
		b, from, err := p.Queue.Splice(body, f.ops, forms)
		if err == nil {
			<-b.Done
			err = b.Err
		}
		if err = p.timely(start, err); err != nil {
			return nil, err
		}
		out := b.Out[from : from+len(f.ops)]
		p.denials.learn(f.ops, out)
		return out, nil
	}
	return p.decideCalls(f, true)
}

// decideCalls decides the calls of a body one after the other. foreign tells that this node was taken for the leader.
func (p *Pipeline) decideCalls(f *forwarded, foreign bool) ([]engine.Decision, error) {
	out, outcomes := f.answers(), outcome{}
	for _, c := range f.calls {
		decide := p.Decide
		if c.atomic {
			decide = p.DecideAtomic
		}
		outcomes.add(decide(f.ops[c.from:c.end], out[c.from:c.end], foreign))
	}
	return out, outcomes.err()
}

// mayLog reports whether a forwarded body can go into the log as it is: it fits an entry, no operation is likely to be
// refused before that, and every member reads it.
func (p *Pipeline) mayLog(f *forwarded, body []byte, forms wire.Forms) bool {
	if int32(forms.Needs) > p.Agreed.Load() || p.denials.likely() || p.memoryExhausted() ||
		len(f.ops) > queue.MaxEntryOps || len(body) > queue.MaxEntryBytes {
		return false
	}
	for _, c := range f.calls {
		if !c.atomic && AllDry(f.ops[c.from:c.end]) {
			return false
		}
	}
	return p.current(f.ops) == nil
}

// AwaitQuiet waits until all forwarded batches are answered and no other node has forwarded a batch for QuietFor.
// After such a pause the other nodes know the new leader. Before it, calls that fail in a handover are sent again at
// once, perhaps to this node.
func (p *Pipeline) AwaitQuiet() {
	ctx, cancel := context.WithTimeout(p.Life.Ctx, maxQuietWait)
	defer cancel()
	quiet := func() bool {
		return p.Answering.Load() == 0 && p.Life.Uptime()-time.Duration(p.lastForwarded.Load()) >= QuietFor
	}
	for ctx.Err() == nil && !quiet() {
		time.Sleep(timers.LeaderlessPause)
	}
	p.Queue.Empty(ctx)
}

// AnswerDecide carries out a body that a follower has forwarded, and returns the status and the answer.
func (p *Pipeline) AnswerDecide(body []byte) (byte, []byte) {
	p.Answering.Add(1)
	defer p.Answering.Add(-1)
	defer func() { p.lastForwarded.Store(int64(p.Life.Uptime())) }()
	if p.Raft.State() != raft.Leader {
		return calls.NotLeader, nil
	}
	return p.answerBody(body, p.decideForwarded)
}

// RelayDecide carries out a body from a host without a replica of this group, through the leader. The caller has tried
// AnswerDecide.
func (p *Pipeline) RelayDecide(body []byte) (byte, []byte) {
	p.Answering.Add(1)
	defer p.Answering.Add(-1)
	relay := func(f *forwarded, _ []byte) ([]engine.Decision, error) { return p.decideCalls(f, false) }
	return p.answerBody(body, relay)
}

// answerBody decodes a body, and answers what decide decides.
func (p *Pipeline) answerBody(body []byte, decide func(*forwarded, []byte) ([]engine.Decision, error)) (byte, []byte) {
	f := forwardedPool.Get().(*forwarded)
	defer f.release()
	if err := f.read(body); err != nil {
		return calls.Refused, []byte(err.Error())
	}
	out, err := decide(f, body)
	if err != nil {
		return calls.Reply(nil, err)
	}
	return calls.Answered, wire.AppendDecisions(make([]byte, 0, 16*len(out)), out, byte(p.Agreed.Load()))
}

// ClearHere clears all nodes as Clear does. It returns ErrNotLeader if this node does not lead.
func (p *Pipeline) ClearHere() error {
	if p.Leadership.Current.Load() == nil {
		return limiter.ErrNotLeader
	}
	return p.Clear()
}

// FollowLeader records the leader and each later change of it, and ends the calls to the previous leader. The Raft
// library's goroutine does this in the filter of an observer, which therefore needs no channel.
func (p *Pipeline) FollowLeader() {
	record := func() {
		_, leader := p.Raft.LeaderWithID()
		p.forwards.leads(p.Life.Ctx, leader, p.Heartbeat/deposedFraction)
	}
	p.Raft.RegisterObserver(raft.NewObserver(nil, false, func(o *raft.Observation) bool {
		if _, is := o.Data.(raft.LeaderObservation); is {
			record()
		}
		return false
	}))
	record()
}
