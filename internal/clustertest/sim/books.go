package sim

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/clustertest/ledger"
)

// holdTTL is the minimum lifetime of a hold of Books.Fleeting. Some of these holds expire during an election.
const holdTTL = time.Second

// holdsOver is the time after which all holds of Books.Fleeting have expired. The last one expires at most twice
// holdTTL after it was made. The remaining time is for elections, in which limiter time stands still.
const holdsOver = 6 * holdTTL

// makePolicies creates the policies before the first fault.
func (s *Simulation) makePolicies() {
	for _, ring := range s.books.Rings() {
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
	rings := append(c.sim.books.Rings(), &c.sim.books.Lasting) // which has most kinds of operations
	ring := rings[c.rng.IntN(len(rings))]
	trail := ring.Next()
	c.send([]call{on(trail, ring.Traffic.Draw(c.rng, trail))}, c.rng.IntN(3) == 0)
}

// closeBooks asks for the remaining units when every fleeting hold has expired. The histories are judged after the
// bubble ends: inside it the clock stands still during a search, so its timeout would never fire.
func (s *Simulation) closeBooks() {
	time.Sleep(holdsOver + s.mostBack())
	c := &client{sim: s, number: clients, rng: rand.New(rand.NewPCG(s.config.Seed, clients))}
	defer s.agreeOnEvents()
	for _, ring := range s.books.Rings() {
		for _, trail := range ring.Trails() {
			left := c.looks(trail, ring.Traffic.Looks(trail))
			if s.mute {
				return
			}
			s.report.later = append(s.report.later, func() error {
				err := s.books.Judge(ring, trail, drift)
				if ring == &s.books.Fleeting {
					err = errors.Join(err, ledger.Explained(trail.Ops(), left))
				}
				return err
			})
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
func (c *client) looks(trail *ledger.Trail, ops []ledger.Op) map[ledger.Pair]ledger.Answer {
	left := map[ledger.Pair]ledger.Answer{}
	for _, op := range ops {
		look := []call{on(trail, op)}
		if !c.sim.within(maxRecovery, func() bool { return c.send(look, c.rng.IntN(3) == 0) == acked }) {
			c.sim.mute = true
			c.sim.violation("nobody answers for %v", op)
			return nil
		}
		left[op.Pairs[0]] = look[0].entry.Answer
	}
	return left
}
