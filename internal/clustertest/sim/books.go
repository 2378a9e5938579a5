package sim

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/clustertest/ledger"
)

// holdTTL is the minimum lifetime of a hold of books.fleeting. Some of these holds expire during an election.
const holdTTL = time.Second

// holdsOver is the time after which all holds of books.fleeting have expired. The last one expires at most twice
// holdTTL after it was made. The remaining time is for elections, in which limiter time stands still.
const holdsOver = 6 * holdTTL

// books are the histories of policies and holds.
type books struct{ linear, turns, fleeting *ledger.Ring }

// newBooks returns the histories of a run. A change of a policy reaches several groups one after the other, so its
// history is linearizable in each of the groups.
func newBooks(groups int) books {
	b := books{&ledger.Ring{Traffic: ledger.Books()}, &ledger.Ring{Traffic: ledger.PolicySwaps()},
		&ledger.Ring{Traffic: ledger.Fleeting(holdTTL)}}
	b.turns.Traffic.OneSetter = groups > 1
	return b
}

func (b *books) rings() []*ledger.Ring { return []*ledger.Ring{b.linear, b.turns, b.fleeting} }

// makePolicies creates the policies before the first fault.
func (s *Simulation) makePolicies() {
	for _, ring := range s.books.rings() {
		for _, op := range ring.Traffic.Founding() {
			made := s.within(maxRecovery, func() bool {
				p := s.anyProcess(s.rng)
				if p == nil {
					return false
				}
				out, err := p.ask([]engine.Op{engineOp(op)}, false)
				return err == nil && out[0].Status == engine.OK
			})
			if !made {
				s.violation("%v was not made", op)
			}
		}
	}
}

// keepBooks runs a check, a hold, its completion or a policy change.
func (c *client) keepBooks() {
	rings := c.sim.books.rings()
	ring := rings[c.rng.IntN(len(rings))]
	trail := ring.Next()
	c.enter(trail, ring.Traffic.Draw(c.rng, trail))
}

// enter sends an operation to some node and adds it to its history. An atomic operation goes through the log, even if a
// denial would not need that.
func (c *client) enter(trail *ledger.Trail, op ledger.Op) outcome {
	defer func() { trail.Ended(op) }()
	p := c.sim.anyProcess(c.rng)
	if p == nil {
		return refused
	}
	op.Client = c.number
	op.CallNs = c.sim.elapsed().Nanoseconds()
	out, err := p.ask([]engine.Op{engineOp(op)}, c.rng.IntN(3) == 0)
	op.ReturnNs = c.sim.elapsed().Nanoseconds()
	o := outcomeOf(err)
	if o == acked {
		o = c.sim.outcomeOf(engineOp(op), out[0].Status)
	}
	if o == acked {
		op.Answer = c.sim.answerOf(op, out[0])
	}
	op.Unknown = o == unknown
	if o != refused {
		trail.Add(op)
	}
	c.sim.history.tally(o)
	return o
}

// closeBooks asks for the remaining units when every fleeting hold has expired. The histories are judged after the
// bubble ends: inside it the clock stands still during a search, so its timeout would never fire.
func (s *Simulation) closeBooks() {
	time.Sleep(holdsOver + s.mostBack())
	c := &client{sim: s, number: clients, rng: rand.New(rand.NewPCG(s.config.Seed, clients))}
	for _, ring := range s.books.rings() {
		for _, trail := range ring.Trails() {
			left := c.looks(trail, ring.Traffic.Looks(trail))
			if s.mute {
				return
			}
			judge := linear
			switch {
			case ring == s.books.fleeting:
				judge = fleeting
			case ring == s.books.turns && s.groups() > 1:
				judge = byGroup
			}
			s.report.later = append(s.report.later, func() error { return judge(trail, left) })
		}
	}
}

// mostBack returns the largest step back of a machine's monotonic clock. While that machine leads, limiter time stands
// still for as long.
func (s *Simulation) mostBack() (most time.Duration) {
	for _, h := range s.machines() {
		most = max(most, h.clock.wentBack())
	}
	return most
}

// looks asks for the remaining units, and adds the answers to the history.
func (c *client) looks(trail *ledger.Trail, ops []ledger.Op) answers {
	left := answers{}
	for _, op := range ops {
		if !c.sim.within(maxRecovery, func() bool { return c.enter(trail, op) == acked }) {
			c.sim.mute = true
			c.sim.violation("nobody answers for %v", op)
			return nil
		}
		all := trail.Ops()
		left[op.Pairs[0]] = all[len(all)-1].Answer
	}
	return left
}

// answers are the remaining units of each pair.
type answers map[ledger.Pair]ledger.Answer

func linear(trail *ledger.Trail, _ answers) error { return ledger.Linearizable(trail.Ops()) }

func byGroup(trail *ledger.Trail, _ answers) error { return ledger.LinearizableByGroup(trail.Ops()) }

func fleeting(trail *ledger.Trail, left answers) error {
	errs := []error{ledger.Explained(trail.Ops(), left)}
	for pair, a := range left {
		errs = append(errs, ledger.OverHeld(trail.Ops(), pair, a.Limit, maxDriftPPM/1e6))
	}
	return errors.Join(errs...)
}
