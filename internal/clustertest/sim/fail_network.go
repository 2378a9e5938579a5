package sim

import (
	"math/rand/v2"
	"time"
)

// partition splits the machines in two groups.
func (s *Simulation) partition(hosts []*host, rng *rand.Rand) {
	side := rng.Uint64()
	s.cut(hosts, rng, "partition", func(i, j int) bool { return side>>i&1 != side>>j&1 })
}

// oneWay cuts some directions.
func (s *Simulation) oneWay(hosts []*host, rng *rand.Rand) {
	one := rng.IntN(len(hosts))
	switch rng.IntN(3) {
	case 0:
		s.cut(hosts, rng, "deaf", func(_, j int) bool { return j == one })
	case 1:
		s.cut(hosts, rng, "dumb", func(i, _ int) bool { return i == one })
	default:
		s.cut(hosts, rng, "one-way", func(_, _ int) bool { return rng.IntN(3) == 0 })
	}
}

func (s *Simulation) cut(hosts []*host, rng *rand.Rand, name string, cuts func(i, j int) bool) {
	var mend []func()
	var what []string
	for i, from := range hosts {
		for j, to := range hosts {
			if i != j && cuts(i, j) {
				s.net.setCut(from.addr, to.addr, true)
				what = append(what, from.id+">"+to.id)
				mend = append(mend, func() { s.net.setCut(from.addr, to.addr, false) })
			}
		}
	}
	s.event("%s: %v", name, what)
	s.later(between(rng, 100*time.Millisecond, 4*time.Second), func() {
		for _, f := range mend {
			f()
		}
	})
}

// slow makes some links slow.
func (s *Simulation) slow(hosts []*host, rng *rand.Rand) {
	most := between(rng, time.Millisecond, 80*time.Millisecond)
	s.event("links are slow: up to %v", most)
	for _, from := range hosts {
		for _, to := range hosts {
			if rng.IntN(2) == 0 {
				l := s.net.link(from.addr, to.addr)
				l.delayNs.Store(int64(most))
				s.later(between(rng, 100*time.Millisecond, 4*time.Second),
					func() { l.delayNs.Store(int64(usualDelay)) })
			}
		}
	}
}
