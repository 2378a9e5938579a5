package pipeline

import (
	"sync"
	"sync/atomic"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/faults"
	"github.com/weir-project/weir/internal/guards"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore/internal/quorum"
)

// learning is the number of calls after a denied call that are checked for denials before they go to the log. The
// check costs a lookup per operation, which is wasted when all operations are admitted.
const learning = 256

// EarlyCheckAfter is the number of consecutive calls, each denied as a whole, after which the next call starts its
// ReadIndex check early. The check is wasted if the call is not denied as a whole.
const EarlyCheckAfter = 8

// denials tracks whether traffic is being denied.
type denials struct {
	left atomic.Int64
	row  atomic.Int32 // consecutive calls that were denied as a whole, at most EarlyCheckAfter
}

func (d *denials) likely() bool { return d.left.Load() > 0 }

func (d *denials) learn(ops []engine.Op, out []engine.Decision) {
	for i := range out[:len(ops)] {
		if out[i].Allowed == 0 && (ops[i].Code == engine.OpTake || ops[i].Code == engine.OpCheck) && ops[i].Cost > 0 {
			d.left.Store(learning)
			return
		}
	}
	if d.likely() {
		d.left.Add(-1)
	}
}

// sure reports whether the next call will almost certainly be denied as a whole.
func (d *denials) sure() bool { return d.row.Load() >= EarlyCheckAfter }

// saw records whether a call was denied as a whole.
func (d *denials) saw(whole bool) {
	switch {
	case !whole && d.row.Load() > 0:
		d.row.Store(0)
	case whole && !d.sure():
		d.row.Add(1)
	}
}

// DecideOrDeny answers denials from the state that this node has applied, and puts the other operations into the log.
// Entries in flight can only take more units, so a denial remains true.
//
// A majority must confirm, after the request arrived, that this node still leads (ReadIndex). An entry of this term
// that commits after the request arrived confirms it, too. If all operations will probably be denied, this node asks
// the majority first and previews the decisions meanwhile. A majority that confirms was in this term after the request
// arrived. So the state contains everything that any node had answered by then, even if another leader was elected
// before the preview.
//
// Entries that were committed when the request arrived are applied first, because a stale read of a follower may have
// shown them.
func (p *Pipeline) DecideOrDeny(ops []engine.Op, out []engine.Decision, foreign bool) error {
	r := p.Leadership.Current.Load()
	if r == nil {
		return p.submit(ops, out, false, foreign)
	}
	s := scratchPool.Get().(*scratch)
	defer scratchPool.Put(s)
	s.fit(len(ops))
	var asked *quorum.Round
	if p.denials.sure() {
		asked = p.Confirms.Join(r.Number)
	}
	p.Reach(faults.DuringDenial)
	if err := p.Reads.AwaitCommitted(); err != nil {
		return err
	}
	now := p.Leadership.Stamp(r)
	answered := p.FSM.Table.Load().Denials(now, ops, out, s.answered)
	if answered > 0 {
		p.denials.left.Store(learning)
	}
	if p.memoryExhausted() {
		answered += p.refuseGrowth(now, ops, out, s.answered)
	}
	p.denials.saw(answered == len(ops))
	switch answered {
	case 0:
		return p.submit(ops, out, false, foreign)
	case len(ops):
		if asked == nil {
			return p.Reads.StillLeads(r)
		}
		if p.Raft.CurrentTerm() != r.Number {
			guards.EarlyQuestion.Hit()
			return limiter.ErrTryAgain // the applied state may have stamps of another leader's clock
		}
		return p.Confirms.Await(asked, r.Number)
	}
	if err := p.submitRest(s, ops, out, foreign); err != nil {
		return err
	}
	if p.Raft.CurrentTerm() != r.Number {
		guards.MixedAnswer.Hit()
		return limiter.ErrUnknownOutcome // the operations in the log count, but the denials are from an older state
	}
	return nil
}

// submitRest puts the operations without an answer into the log.
func (p *Pipeline) submitRest(s *scratch, ops []engine.Op, out []engine.Decision, foreign bool) error {
	for i, done := range s.answered {
		if !done {
			s.ops = append(s.ops, ops[i])
		}
	}
	if err := p.submit(s.ops, s.out[:len(s.ops)], false, foreign); err != nil {
		return err
	}
	next := 0
	for i, done := range s.answered {
		if !done {
			out[i] = s.out[next]
			next++
		}
	}
	return nil
}

// scratch is the reusable memory of one call.
type scratch struct {
	answered []bool
	ops      []engine.Op
	out      []engine.Decision
}

var scratchPool = sync.Pool{New: func() any { return new(scratch) }}

func (s *scratch) fit(n int) {
	if cap(s.answered) < n {
		s.answered, s.ops, s.out = make([]bool, n), make([]engine.Op, 0, n), make([]engine.Decision, n)
	}
	s.answered, s.ops, s.out = s.answered[:n], s.ops[:0], s.out[:n]
}
