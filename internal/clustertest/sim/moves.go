package sim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/weir-project/weir/limiter"
)

// In a cluster with Config.Replicas, operators move replicas between nodes. A fault interrupts most moves at a step:
// the source, the target or the leader of the group is killed, or the operator gives up. A later operator repeats the
// move or undoes it. In the end the last move of each group is repeated until it is done.

const (
	// stepEvery is the mean pause of an operator between two steps.
	stepEvery = 150 * time.Millisecond
	// moveFor bounds how long one operator works on a move.
	moveFor = 12 * time.Second
	// interruptWithin bounds the time from a step to the fault that interrupts it.
	interruptWithin = 300 * time.Millisecond
)

// moveSteps are parts of what MoveReplica says about its steps. The first is the begin of a move.
var moveSteps = []string{"begins", "opens", "catches up", "leadership", "removed"}

// victims are the parties of a move that a fault hits.
var victims = []string{"source", "target", "leader", "operator", "nobody"}

// lastMove is the last move of a replica of a group.
type lastMove struct {
	from, to string // ids in the first group
	busy     bool   // an operator works on it
	begun    bool   // a call may have changed something
	done     bool
}

// interruption is a fault during a move.
type interruption struct {
	step        string // of moveSteps
	victim      string
	after       time.Duration // since the step
	keepPercent int
	silentFor   time.Duration
	down        time.Duration
}

func drawInterruption(rng *rand.Rand) interruption {
	i := interruption{
		step: moveSteps[rng.IntN(len(moveSteps))], victim: victims[rng.IntN(len(victims))],
		after: between(rng, 0, interruptWithin), keepPercent: percent(rng),
		down: between(rng, 20*time.Millisecond, 5*time.Second),
	}
	if rng.IntN(3) == 0 {
		i.silentFor = between(rng, time.Second, 8*time.Second)
	}
	return i
}

// moveReplica lets an operator move a replica of a group, or go on with the last move, or undo it.
func (s *Simulation) moveReplica(rng *rand.Rand) {
	group, p := rng.IntN(s.groups()), s.anyProcess(rng)
	if p == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m := &s.moves[group]
	switch unfinished := m.begun && !m.done; {
	case m.busy, !unfinished && s.replacing.Load():
		return
	case unfinished && m.from != "" && rng.IntN(3) == 0:
		m.from, m.to = m.to, m.from
	case unfinished:
	default:
		next, ok := drawMove(p.node.Topology(), group, rng)
		if !ok {
			return
		}
		*m = next
	}
	m.busy = true
	now, i := *m, drawInterruption(rng)
	s.operators.Go(func() { s.operate(group, now, i, rng) })
}

// moving reports whether a move of any group is not done.
func (s *Simulation) moving() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.moves, func(m lastMove) bool { return m.busy || m.begun && !m.done })
}

// refill gives a machine that has lost its disk the replicas back that it had. The first group replaces a vote by
// itself. Later operators do the steps.
func (s *Simulation) refill(had []int, h *host) {
	p := h.running()
	if s.config.Replicas == 0 || p == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, group := range had {
		s.moves[group] = lastMove{to: p.node.Topology().Self, begun: true}
	}
}

// groupsOn returns the groups after the first that have a replica in a process, as their leaders know it.
func (s *Simulation) groupsOn(p *process) (groups []int) {
	for i := 1; i < s.groups(); i++ {
		if slices.Contains(s.membersOf(i), p) {
			groups = append(groups, i)
		}
	}
	return groups
}

// drawMove draws a move of a whole group.
func drawMove(t *limiter.Topology, group int, rng *rand.Rand) (m lastMove, ok bool) {
	g := &t.Groups[group]
	others := slices.DeleteFunc(slices.Clone(t.Nodes), func(of limiter.Member) bool { return g.Has(of.ID) })
	if len(g.Members) != t.Replicas || len(others) == 0 {
		return m, false
	}
	m.from, m.to = g.Members[rng.IntN(len(g.Members))].ID, others[rng.IntN(len(others))].ID
	if rng.IntN(2) == 0 && g.Has(g.Leader) {
		m.from = g.Leader
	}
	return m, true
}

// operate repeats the steps of a move at any nodes until it is done, a step is refused or the operator gives up.
func (s *Simulation) operate(group int, m lastMove, i interruption, rng *rand.Rand) {
	s.event("an operator moves group %d from %s to %s; %s fails when it %s", group, m.from, m.to, i.victim, i.step)
	hit := s.interrupt(group, m, i, moveSteps[0])
	for began := time.Now(); time.Since(began) < moveFor && !s.healed.Load(); {
		move, err := s.step(group, m, rng, hit && i.victim == "operator", i.after)
		m.begun = m.begun || err == nil && !move.Waits && !move.Done || mayHaveMoved(err)
		m.done = err == nil && move.Done
		if m.done || hit && i.victim == "operator" || err != nil && !repeatable(err) {
			break
		}
		hit = hit || err == nil && s.interrupt(group, m, i, move.Step)
		time.Sleep(time.Duration(rng.ExpFloat64() * float64(stepEvery)))
	}
	s.report.moved(m, i, hit)
	s.mu.Lock()
	defer s.mu.Unlock()
	m.busy = false
	s.moves[group] = m
}

// errGaveUp is the error of a step whose operator did not wait for its end.
var errGaveUp = errors.New("the operator gave up")

// step makes the next step of a move at some node. With leaves the operator does not wait longer than after.
func (s *Simulation) step(group int, m lastMove, rng *rand.Rand, leaves bool, after time.Duration) (
	limiter.Move, error,
) {
	p := s.anyProcess(rng)
	if p == nil {
		return limiter.Move{}, limiter.ErrTryAgain
	}
	type result struct {
		move limiter.Move
		err  error
	}
	done := make(chan result, 1)
	s.tasks.Go(func() {
		var r result
		moved := make(chan limiter.Move, 1)
		r.err = p.do(func() error {
			move, err := p.node.MoveReplica(group, m.from, m.to)
			moved <- move
			return err
		})
		if r.err == nil {
			r.move = <-moved
		}
		s.event("%s: group %d from %s to %s: %+v %v", p.host.id, group, m.from, m.to, r.move, r.err)
		done <- r
	})
	var gaveUp <-chan time.Time
	if leaves {
		gaveUp = time.After(after)
	}
	select {
	case r := <-done:
		return r.move, r.err
	case <-gaveUp:
		return limiter.Move{}, errGaveUp
	}
}

// repeatable reports whether an operator repeats a step after an error.
func repeatable(err error) bool { return errors.Is(err, limiter.ErrOverloaded) || mayHaveMoved(err) }

// mayHaveMoved reports whether a step with this error may have changed something, such as a replica that opens.
func mayHaveMoved(err error) bool {
	for _, e := range []error{limiter.ErrTryAgain, limiter.ErrClusterDown, limiter.ErrUnknownOutcome, errCrashed,
		errGaveUp} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// interrupt prepares the fault of a move if the move is at its step, and reports whether it is.
func (s *Simulation) interrupt(group int, m lastMove, i interruption, step string) bool {
	if !strings.Contains(step, i.step) {
		return false
	}
	if i.victim != "operator" && i.victim != "nobody" {
		s.later(i.after, func() { s.killVictim(group, m, i) })
	}
	return true
}

// killVictim kills the source or the target of a move, or the leader of its group.
func (s *Simulation) killVictim(group int, m lastMove, i interruption) {
	id := map[string]string{"source": m.from, "target": m.to}[i.victim]
	for _, h := range s.machines() {
		p := h.running()
		if p == nil || p.drain.Load() || id != "" && !h.is(id) {
			continue
		}
		if t := p.group[group].Topology(); id != "" || t.Leads() {
			p.crash(fmt.Sprintf("killed as the %s of a move of group %d", i.victim, group), i.keepPercent, i.silentFor)
			if i.silentFor > 0 {
				h.clock.reboot()
			}
			s.reviveLater(h, i.down)
			return
		}
	}
}

// finishMoves repeats the last move of each group until it is done. Then every group has its replicas.
func (s *Simulation) finishMoves() {
	if s.config.Replicas == 0 {
		return
	}
	s.healed.Store(true)
	s.operators.Wait()
	s.within(maxRecovery, func() bool { return !s.replacing.Load() })
	s.mu.Lock()
	last := slices.Clone(s.moves)
	s.mu.Unlock()
	for group, m := range last {
		if !m.begun || m.done {
			continue
		}
		var move limiter.Move
		var err error
		finished := s.within(maxRecovery, func() bool {
			move, err = s.step(group, m, s.rng, false, 0)
			// A node that was replaced meanwhile may have given the group the number that it shall have.
			whole := err != nil && (strings.Contains(err.Error(), "and shall have") ||
				strings.Contains(err.Error(), "has no replica of group"))
			return err == nil && move.Done || whole
		})
		if !finished {
			s.violation("group %d: the move from %s to %s does not end: %+v %v", group, m.from, m.to, move, err)
		}
		s.report.finished()
	}
	var unlike string
	if !s.within(maxRecovery, func() bool { unlike = s.unlikeReplicas(); return unlike == "" }) {
		s.violation("after all moves: %s", unlike)
	}
}

// unlikeReplicas says how the replicas of a group differ from those that it shall have, as some member sees them. It
// returns "" if every group has Config.Replicas voters, and no node has another replica.
func (s *Simulation) unlikeReplicas() string {
	members := s.members()
	if members == nil {
		return "a group has no leader, or a member does not run"
	}
	for _, p := range members {
		t := p.node.Topology()
		for i := range t.Groups {
			g := &t.Groups[i]
			voters := slices.DeleteFunc(slices.Clone(g.Members), func(m limiter.GroupMember) bool { return !m.Voter })
			if len(voters) != s.config.Replicas || len(g.Members) != len(voters) ||
				i > 0 && g.Away == g.Has(t.Self) {
				return fmt.Sprintf("%s sees group %d as %+v", p.host.id, i, *g)
			}
		}
	}
	return ""
}
