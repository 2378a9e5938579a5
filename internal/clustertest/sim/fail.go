package sim

import (
	"math/rand/v2"
	"time"
)

// fail injects the faults of the plan.
func (s *Simulation) fail() {
	w, length := s.config.weights, s.config.length
	if w == nil {
		w = usual(s.config, s.rng)
	}
	if length == 0 {
		length = usualLength
	}
	for _, f := range plan(s.rng, w, length) {
		time.Sleep(f.wait)
		s.report.fault(f.kind)
		s.act(f.kind, rand.New(rand.NewPCG(s.config.Seed, f.pick)))
		if s.compare(); s.found() {
			return
		}
	}
}

// act injects one fault, and ends it after a while.
func (s *Simulation) act(kind string, rng *rand.Rand) {
	hosts := s.machines()
	h := hosts[rng.IntN(len(hosts))]
	switch kind {
	case "crash":
		s.crash(h, percent(rng), 0, rng)
	case "power loss":
		s.crash(h, percent(rng), between(rng, time.Second, 8*time.Second), rng)
	case "restart all":
		for _, h := range hosts {
			s.crash(h, percent(rng), 0, rng)
		}
	case "orderly restart":
		s.bounce(h, rng)
	case "partition":
		s.partition(hosts, rng)
	case "one-way partition":
		s.oneWay(hosts, rng)
	case "slow links":
		s.slow(hosts, rng)
	case "connection resets":
		s.net.resetSome(0.3 + 0.7*rng.Float64())
		s.event("connections are reset")
	case "wall clock step":
		// Only one machine's wall clock steps, and always the same. After the whole cluster was down, the wall clocks
		// of a majority are trusted.
		h = hosts[s.config.Seed%uint64(s.config.Nodes)]
		by := time.Duration(1-2*rng.IntN(2)) * time.Hour
		h.clock.step(by)
		s.event("the wall clock of %s steps by %v", h.id, by)
	case "monotonic clock back":
		by := between(rng, time.Millisecond, 2*time.Second)
		h.clock.back(by)
		s.event("the monotonic clock of %s goes back by %v", h.id, by)
	case "lost disk":
		s.lose(h)
	case "stale proposal", "outlived denial", "deposed at once", "slow apply", "slow forward", "stop at election":
		s.race(kind, rng)
	case "stolen id", "stolen address", "forged join", "late image":
		s.masquerade(kind, h, rng)
	case "move":
		s.moveReplica(rng)
	case "remove group":
		s.removeGroup(hosts, rng)
	case "add node", "remove node":
		s.changeMembers(kind, hosts, rng)
	default:
		s.trouble(kind, h, rng)
	}
}

// trouble injects a fault into one process.
func (s *Simulation) trouble(kind string, h *host, rng *rand.Rand) {
	p := h.running()
	if p == nil {
		return
	}
	switch kind {
	case "disk error":
		nth := 1 + rng.IntN(60)
		p.disk.failAt(nth, rng.IntN(2) == 0)
		s.event("the disk of %s fails at write %d from now", h.id, nth)
		s.reviveLater(h, between(rng, time.Second, 5*time.Second))
	case "disk stall":
		p.logs.hang()
		s.event("the disk of %s hangs", h.id)
		s.later(between(rng, 50*time.Millisecond, 7*time.Second), func() { p.logs.release(false) })
		s.reviveLater(h, between(rng, 7*time.Second, 9*time.Second))
	case "snapshot":
		s.event("a snapshot of %s", h.id)
		s.tasks.Go(func() { p.node.Snapshot() })
	case "transfer":
		s.event("%s is told to transfer leadership", h.id)
		s.tasks.Go(func() { p.node.TransferLeadership("") })
	}
}

// later runs do after wait, in a goroutine of s.tasks.
func (s *Simulation) later(wait time.Duration, do func()) {
	s.tasks.Go(func() {
		time.Sleep(wait)
		do()
	})
}

// reviveLater restarts a process that may have stopped.
func (s *Simulation) reviveLater(h *host, wait time.Duration) { s.later(wait, h.start) }

func (s *Simulation) crash(h *host, keepPercent int, silentFor time.Duration, rng *rand.Rand) {
	p := h.running()
	if p == nil || p.drain.Load() {
		return
	}
	why := "killed"
	if silentFor > 0 {
		why = "power loss"
	}
	p.crash(why, keepPercent, silentFor)
	if silentFor > 0 {
		h.clock.reboot()
	}
	s.reviveLater(h, between(rng, 20*time.Millisecond, 3*time.Second))
}

// bounce stops a node in an orderly way and restarts it.
func (s *Simulation) bounce(h *host, rng *rand.Rand) {
	p := h.running()
	if p == nil || p.drain.Swap(true) {
		return
	}
	wait := between(rng, 0, time.Second)
	s.tasks.Go(func() {
		p.stop()
		time.Sleep(wait)
		h.start()
	})
}
