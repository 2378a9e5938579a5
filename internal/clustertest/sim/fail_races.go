package sim

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/engine/hashslot"
	"github.com/weir-project/weir/internal/faults"
)

// These are the races of terms. A leader waits between two steps, and another node leads meanwhile.

const (
	// raceLimit bounds the wait for each step of a race.
	raceLimit = time.Second
	// longCall does not fit one log entry.
	longCall = 1500
	// partTakes is more than half of the maximum duration of a decision.
	partTakes = 1200 * time.Millisecond
	// denialsTried is how many takes of spent make a leader expect denials, even among the calls of clients.
	denialsTried = 24
)

// spent is a bucket of one unit that only the races use. It is in the first group, whose leader the races stop.
var spent = engine.Op{
	Key: []byte("{" + hashslot.Tag(0) + "}x"), Cost: 1,
	Limit: engine.Limit{Algorithm: engine.FixedWindow, Mode: engine.Forever, Max: 1},
}

// race starts one of the races of terms, on the process that leads.
func (s *Simulation) race(kind string, rng *rand.Rand) {
	p := s.leaderNow()
	if p == nil {
		return
	}
	s.event("%s at %s", kind, p.host.id)
	s.tasks.Go(func() {
		switch kind {
		case "stale proposal":
			s.staleProposal(p)
		case "outlived denial":
			s.outlivedDenial(p, rng)
		case "deposed at once":
			s.deposedAtOnce(p)
		case "slow apply":
			s.slowApply(p, rng)
		case "slow forward":
			s.slowForward(p)
		case "stop at election":
			s.stopAtElection(p, rng)
		}
	})
}

// leaderNow returns the process that leads, or nil.
func (s *Simulation) leaderNow() *process {
	for _, h := range s.machines() {
		if p := h.running(); p != nil && !p.drain.Load() && p.leads() {
			return p
		}
	}
	return nil
}

func (p *process) leads() bool {
	t := p.node.Topology()
	return t.Leader == t.Self
}

// until polls a condition of a race.
func until(so func() bool) bool {
	for began := time.Now(); time.Since(began) < raceLimit; time.Sleep(pollEvery / 4) {
		if so() {
			return true
		}
	}
	return false
}

// handOver makes another process than from the leader, and returns it, or nil.
func (s *Simulation) handOver(from *process) (next *process) {
	go from.node.TransferLeadership("")
	until(func() bool {
		next = s.leaderNow()
		return next != nil && next != from
	})
	if next == from {
		return nil
	}
	return next
}

// staleProposal lets a leader take a batch for its term, lose its leadership and lead again. The leader then proposes
// the batch with its stamp of the first term.
func (s *Simulation) staleProposal(p *process) {
	held := p.stopAt(faults.BeforeProposal, 0)
	defer held.release()
	if !held.within(raceLimit) {
		return
	}
	if next := s.handOver(p); next != nil {
		go next.node.TransferLeadership(p.node.Topology().Self)
		until(p.leads)
	}
}

// outlivedDenial deposes a leader after it took calls to deny and before it reads its state. No call may be answered
// from that state.
func (s *Simulation) outlivedDenial(p *process, rng *rand.Rand) {
	tried, back := denialsTried, rng.IntN(2) == 0
	if rng.IntN(2) == 0 {
		tried = 2 // the leader expects denials, but not of whole calls
	}
	for range tried {
		if _, err := p.ask([]engine.Op{spent}, false); err != nil {
			return
		}
	}
	fresh := spent
	fresh.Key = []byte("{" + hashslot.Tag(0) + "}xfresh")
	fresh.Limit.Max = plenty
	held := p.stopAt(faults.DuringDenial, 0)
	defer held.release()
	for _, ops := range [][]engine.Op{{spent}, {spent, fresh}, {spent}} {
		s.tasks.Go(func() { p.ask(ops, false) }) // the mutation tests show that it must not answer
	}
	if !held.within(raceLimit) {
		return
	}
	if next := s.handOver(p); next != nil && back {
		go next.node.TransferLeadership(p.node.Topology().Self)
		until(p.leads)
	}
}

// deposedAtOnce cuts a leader off right after its election. Another node is elected before it serves.
func (s *Simulation) deposedAtOnce(p *process) {
	held := s.stopOthers(p, faults.BeforeLeadership, 0)
	defer releaseAll(held)
	go p.node.TransferLeadership("")
	elected := firstOf(held)
	if elected == nil {
		return
	}
	term := elected.node.Topology().Term
	s.cutOff(elected, true)
	defer s.cutOff(elected, false)
	for _, one := range held {
		if one.of != elected {
			one.release()
		}
	}
	until(func() bool { next := s.leaderNow(); return next != nil && next.node.Topology().Term > term })
	s.cutOff(elected, false)
	until(func() bool { return elected.node.Topology().Term > term })
}

// stopOthers sets a failpoint in every process but one.
func (s *Simulation) stopOthers(p *process, at faults.Point, skip int) (held []*stop) {
	for _, h := range s.machines() {
		if q := h.running(); q != nil && q != p {
			held = append(held, q.stopAt(at, skip))
		}
	}
	return held
}

// firstOf returns the first process that reaches its failpoint, or nil.
func firstOf(held []*stop) *process {
	if !until(func() bool { return slices.ContainsFunc(held, (*stop).isReached) }) {
		return nil
	}
	return held[slices.IndexFunc(held, (*stop).isReached)].of
}

func releaseAll(held []*stop) {
	for _, one := range held {
		one.release()
	}
}

// cutOff separates a process from all others, or ends the separation.
func (s *Simulation) cutOff(p *process, cut bool) {
	for _, h := range s.machines() {
		if h != p.host {
			s.net.setCut(h.addr, p.host.addr, cut)
			s.net.setCut(p.host.addr, h.addr, cut)
		}
	}
}

// slowApply lets a leader apply an entry later than its followers, which already show it.
func (s *Simulation) slowApply(p *process, rng *rand.Rand) {
	held := p.stopAt(faults.BeforeApply, 0)
	defer held.release()
	if held.within(raceLimit) {
		time.Sleep(between(rng, 50*time.Millisecond, 2500*time.Millisecond))
	}
}

// slowForward lets a follower send the leader a call in two parts. Each part fits the maximum duration of a decision,
// and both together do not.
func (s *Simulation) slowForward(leader *process) {
	p := s.anyProcess(rand.New(rand.NewPCG(s.config.Seed, uint64(s.elapsed()))))
	if p == nil || p == leader {
		return
	}
	held := []*stop{p.stopAt(faults.BeforeForward, 0), p.stopAt(faults.BeforeForward, 1)}
	defer releaseAll(held)
	long := make([]engine.Op, longCall)
	for i := range long {
		long[i] = spent
	}
	s.tasks.Go(func() { p.ask(long, false) })
	for _, one := range held {
		if one.within(raceLimit) {
			time.Sleep(partTakes)
			one.release()
		}
	}
}

// stopAtElection cuts the power of all machines after the first entry of a new leader, before it has recorded the wall
// clocks.
func (s *Simulation) stopAtElection(p *process, rng *rand.Rand) {
	elected := s.stopOthers(p, faults.BeforeLeadership, 0)
	defer releaseAll(elected)
	second := s.stopOthers(p, faults.BeforeProposal, 1)
	defer releaseAll(second)
	go p.node.TransferLeadership("")
	next := firstOf(elected)
	if next == nil {
		return
	}
	s.tasks.Go(func() { next.ask([]engine.Op{spent}, false) }) // in the queue before the entry with the wall clocks
	time.Sleep(pollEvery / 4)
	releaseAll(elected)
	if firstOf(second) == nil {
		return
	}
	time.Sleep(pollEvery) // the first entry is committed
	for _, h := range s.machines() {
		s.crash(h, 100, 0, rng)
	}
}
