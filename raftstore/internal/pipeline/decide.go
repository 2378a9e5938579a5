package pipeline

import (
	"errors"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/guards"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore/internal/queue"
	"github.com/weir-project/weir/raftstore/wire"
)

// Decide implements Node.Decide. foreign tells that another node has forwarded the operations.
func (p *Pipeline) Decide(ops []engine.Op, out []engine.Decision, foreign bool) error {
	if AllDry(ops) {
		p.FSM.Table.Load().Explain(p.Reads.LookStamp(), ops, out)
		return nil
	}
	start := time.Now()
	if !p.denials.likely() && !p.memoryExhausted() {
		return p.timely(start, p.submit(ops, out, false, foreign))
	}
	return p.timely(start, p.DecideOrDeny(ops, out, foreign))
}

// Start is the first half of Decide for operations of this node's clients: it puts them into the queue, and wait is the
// second half. So a caller can decide in several groups without a goroutine for each. started is false, and nothing is
// done, if the operations may need several entries or none.
func (p *Pipeline) Start(ops []engine.Op, out []engine.Decision) (wait func() error, started bool) {
	if p.denials.likely() || p.memoryExhausted() || fitting(ops) < len(ops) || AllDry(ops) {
		return nil, false
	}
	start := time.Now()
	b, from, err := p.enqueue(ops)
	return func() error {
		if err == nil {
			<-b.Done
			err = b.Err
		}
		if err == nil {
			copy(out, b.Out[from:from+len(ops)])
			p.denials.learn(ops, out)
		}
		return p.timely(start, err)
	}, true
}

// AllDry reports whether no operation changes anything.
func AllDry(ops []engine.Op) bool {
	for i := range ops {
		if !ops[i].Dry {
			return false
		}
	}
	return true
}

// enqueue puts operations that fit an entry into the queue.
func (p *Pipeline) enqueue(ops []engine.Op) (b *queue.Batch, from int, err error) {
	if err := p.admissible(ops); err != nil {
		return nil, 0, err
	}
	return p.Queue.Add(ops, false, false)
}

// admissible returns the error of operations that may not be put into the log.
func (p *Pipeline) admissible(ops []engine.Op) error {
	if err := p.current(ops); err != nil {
		return err
	}
	err := p.Format.CheckReadable(ops)
	if errors.Is(err, limiter.ErrOldMember) { // a node that has just restarted does not know yet what its log has
		if err = p.Reads.ReadIndex(); err == nil {
			err = p.Format.CheckReadable(ops)
		}
	}
	return err
}

// current refuses an operation whose current and next calendar windows have ended. The clock of the node that accepted
// the operation is then behind. Every such request would otherwise begin a new window.
func (p *Pipeline) current(ops []engine.Op) error {
	if r := p.Leadership.Current.Load(); r != nil {
		now := r.Clock.Now()
		for i := range ops {
			if c := ops[i].Calendar; c != nil && c.NextEndNs <= now.NowNs+now.WallOffsetNs {
				return limiter.ErrTryAgain
			}
		}
	}
	return nil
}

// DecideAtomic implements Node.DecideAtomic. foreign tells that another node has forwarded the operations.
func (p *Pipeline) DecideAtomic(ops []engine.Op, out []engine.Decision, foreign bool) error {
	start := time.Now()
	if r := p.Leadership.Current.Load(); r != nil && p.memoryExhausted() && p.refuseGrowthOfAll(ops, out) {
		return p.timely(start, p.Reads.StillLeads(r))
	}
	return p.timely(start, p.submit(ops, out, true, foreign))
}

// timely turns an answer after MaxAge into ErrUnknownOutcome, because a late admission adds to the requests that were
// admitted since. It does the same while a divergence check of this node is under way.
func (p *Pipeline) timely(start time.Time, err error) error {
	switch {
	case err != nil:
		return err
	case time.Since(start) > p.MaxAge:
		p.Late.Add(1)
		guards.LateAnswer.Hit()
		return limiter.ErrUnknownOutcome
	case p.Disputed.Load():
		guards.DisputedAnswer.Hit()
		return limiter.ErrUnknownOutcome // the operation is counted, but this node's state may be wrong
	}
	return nil
}

// Sending is where Submit puts operations.
type Sending struct {
	Queue   *queue.Queue
	Foreign bool // another node has sent the operations
	// OneByOne reports whether a part of a call must be answered before the next one is sent, because calls to the
	// leader have no order.
	OneByOne func() bool
}

// callPart is the place of one part of a call: index of the first answer in b.Out b, and in the operations of the
// call.
type callPart struct {
	b        *queue.Batch
	from     int // in the batch
	low, end int // bounds in the operations of the call
}

// submit puts operations into the log and waits for their answers. On a follower each part of a long call waits for the
// previous one.
func (p *Pipeline) submit(ops []engine.Op, out []engine.Decision, atomic, foreign bool) error {
	if err := p.admissible(ops); err != nil {
		return err
	}
	follows := func() bool { return p.Leadership.Current.Load() == nil }
	if err := (Sending{p.Queue, foreign, follows}).Submit(ops, out, atomic); err != nil {
		return err
	}
	p.denials.learn(ops, out)
	return nil
}

// Submit puts operations into a queue and waits for their answers. It splits a call that does not fit an entry, unless
// the call is atomic.
func (s Sending) Submit(ops []engine.Op, out []engine.Decision, atomic bool) error {
	var few [4]callPart
	places, outcomes := few[:0], outcome{}
	for low := 0; low < len(ops); {
		part := callPart{low: low, end: len(ops)}
		if !atomic {
			part.end = low + fitting(ops[low:])
		}
		var err error
		if part.b, part.from, err = s.Queue.Add(ops[low:part.end], atomic, s.Foreign); err != nil {
			outcomes.add(err)
			break
		}
		if places, low = append(places, part), part.end; low < len(ops) && s.OneByOne() {
			if <-part.b.Done; part.b.Err != nil {
				break
			}
		}
	}
	for _, part := range places {
		<-part.b.Done
		if outcomes.add(part.b.Err); part.b.Err == nil {
			copy(out[part.low:part.end], part.b.Out[part.from:])
		}
	}
	return outcomes.err()
}

// fitting returns how many leading operations fit one entry, at least one.
func fitting(ops []engine.Op) int {
	bytes := 0
	for i := range ops {
		if bytes += wire.Estimate(&ops[i]); i > 0 && (bytes > queue.MaxEntryBytes || i >= queue.MaxEntryOps) {
			return i
		}
	}
	return len(ops)
}

// outcome collects the outcomes of the parts of a call.
type outcome struct {
	ok    bool
	first error
	mixed bool
}

func (o *outcome) add(err error) {
	switch {
	case err == nil:
		o.ok = true
	case o.first == nil:
		o.first = err
	case !errors.Is(err, o.first):
		o.mixed = true
	}
}

// err returns nil if every part was carried out. It returns an error that excludes counting only if all parts failed
// with that error. Otherwise it returns ErrUnknownOutcome.
func (o *outcome) err() error {
	if o.first != nil && (o.ok || o.mixed) {
		return limiter.ErrUnknownOutcome
	}
	return o.first
}

// Clear removes all limiters, blocks and remembered IDs on all nodes. Policies stay.
func (p *Pipeline) Clear() error {
	b, err := p.Queue.Special(wire.Clear)
	if err != nil {
		return err
	}
	<-b.Done
	return b.Err
}
