package pipeline

import (
	"sync"
	"sync/atomic"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/faults"
	"github.com/weir-project/weir/internal/guards"
	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/internal/quorum"
)

// learning is how many calls after one that was denied are looked at for denials
// before they go to the log: looking costs a lookup per operation, for nothing where
// all is admitted.
const learning = 256

// Surely is how many calls in a row that were denied as a whole let the next one ask
// ahead whether this node still leads: where one is not denied that was for nothing.
const Surely = 8

// denials remembers whether traffic is being denied.
type denials struct {
	left atomic.Int64
	row  atomic.Int32 // calls denied as a whole since the last that was not, up to surely
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

// sure reports whether the next call will hardly be anything but denied as a whole.
func (d *denials) sure() bool { return d.row.Load() >= Surely }

// saw takes note of a call that was denied as a whole, or was not.
func (d *denials) saw(whole bool) {
	switch {
	case !whole && d.row.Load() > 0:
		d.row.Store(0)
	case whole && !d.sure():
		d.row.Add(1)
	}
}

// DecideOrDeny answers from the state applied here what is denied by it, and puts
// the rest into the log. Whatever is under way can only take more, so a denial
// stays one; that this node still leads is what a majority has to confirm, after
// the request arrived. An entry that commits confirms it too. Where all is denied the
// majority is asked while this node looks: it was in this term when the request arrived,
// so all that had been answered by then is in the state that is looked at, also where
// another has been elected in between. What was committed when the request arrived is
// applied first, because a read of a follower may have shown it.
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
	answered := p.FSM.Table.Load().Denials(p.Leadership.Stamp(r), ops, out, s.answered)
	if answered > 0 {
		p.denials.left.Store(learning)
	}
	if p.memoryExhausted() {
		answered += p.refuseGrowth(ops, out, s.answered)
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
			return failure.ErrTryAgain // what was looked at may have stamps of another leader's clock
		}
		return p.Confirms.Await(asked, r.Number)
	}
	if err := p.submitRest(s, ops, out, foreign); err != nil {
		return err
	}
	if p.Raft.CurrentTerm() != r.Number {
		guards.MixedAnswer.Hit()
		return failure.ErrUnknown // the rest was carried out, the denials are from an older state
	}
	return nil
}

// submitRest puts into the log what was not answered without it.
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

// scratch is the memory of one mixed call.
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
