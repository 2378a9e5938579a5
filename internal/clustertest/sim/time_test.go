package sim

import (
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
)

// timed runs a test of limiter time in fake time, on a cluster with this many nodes.
func timed(t *testing.T, nodes int, test func(t *testing.T, s *Simulation)) {
	synctest.Test(t, func(t *testing.T) {
		s := newSimulation(Config{Nodes: nodes, Logger: slog.New(slog.DiscardHandler)}, NewReport())
		s.start()
		defer s.end()
		require.True(t, s.answers())
		test(t, s)
	})
}

// stopAll crashes every node at once, and restarts them all after the downtime.
func (s *Simulation) stopAll(t *testing.T, down time.Duration) {
	for _, h := range s.machines() {
		h.running().crash("power loss of all", 0, 0)
		h.clock.reboot()
	}
	time.Sleep(down)
	for _, h := range s.machines() {
		h.start()
	}
	require.True(t, s.answers())
}

func (s *Simulation) leads(t *testing.T) (leader *process) {
	require.True(t, s.within(maxRecovery, func() bool {
		for _, h := range s.machines() {
			if p := h.running(); p != nil && p.node.Topology().Leader == p.node.Topology().Self {
				leader = p
				return true
			}
		}
		return false
	}))
	return leader
}

// behind returns how far the node's calendar time is behind true time.
func (p *process) behind() time.Duration {
	at := p.node.Now()
	return time.Duration(time.Now().UnixNano() - at.NowNs - at.WallOffsetNs)
}

// dayEnds returns when the day of a quota ends, according to the answer that a client gets.
func (s *Simulation) dayEnds(t *testing.T) time.Time {
	midnight := time.Now().UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
	day := &engine.Calendar{EndNs: midnight.UnixNano(), NextEndNs: midnight.Add(24 * time.Hour).UnixNano()}
	out, err := s.leads(t).ask([]engine.Op{{
		Key: []byte("day"), Cost: 1, Calendar: day,
		Limit: engine.Limit{Algorithm: engine.FixedWindow, Mode: engine.Day, Max: plenty},
	}}, false)
	require.NoError(t, err)
	return time.Now().Add(time.Duration(out[0].ResetMs) * time.Millisecond)
}

// driftIn returns how far clocks may differ after d, plus a small allowance for delays.
func driftIn(d time.Duration) time.Duration { return 3*d*maxDriftPPM/1_000_000 + 20*time.Millisecond }

// TestAColdStartFollowsTheWallClocks checks that a restart of the whole cluster credits the downtime at once. Refills
// and calendar windows must both be right.
func TestAColdStartFollowsTheWallClocks(t *testing.T) {
	for _, nodes := range []int{1, 3} {
		for _, down := range []time.Duration{45 * time.Second, time.Hour} {
			t.Run(fmt.Sprintf("%d nodes, %v", nodes, down), func(t *testing.T) {
				timed(t, nodes, func(t *testing.T, s *Simulation) {
					time.Sleep(3 * time.Second)
					before, began := s.leads(t).node.Now().NowNs, time.Now()
					s.stopAll(t, down)
					passed, given := time.Since(began), time.Duration(s.leads(t).node.Now().NowNs-before)
					behind := s.leads(t).behind()
					midnight := time.Now().UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
					late := s.dayEnds(t).Sub(midnight)
					t.Logf("refill lost %v, calendar behind %v, day resets %v late", passed-given, behind, late)
					require.InDelta(t, passed, given, float64(driftIn(passed)),
						"limiter time must include the downtime")
					require.InDelta(t, 0, behind, float64(driftIn(passed)),
						"calendar time must be right after the restart")
					require.InDelta(t, 0, late, float64(driftIn(passed)), "the day must end at midnight")
				})
			})
		}
	}
}

// lastEntryAge is the longest time between the last entry of an idle leader and a crash. The bound on credited
// downtime counts from that entry.
const lastEntryAge = time.Second + 250*time.Millisecond

// TestAColdStartBelievesAMajority checks that wrong wall clocks have no effect while a majority is right. It also
// checks that the time a wrong majority can credit is bounded.
func TestAColdStartBelievesAMajority(t *testing.T) {
	const down, year = time.Minute, 365 * 24 * time.Hour
	for _, c := range []struct {
		name   string
		steps  []time.Duration // of the nodes' wall clocks, made before the restart
		refill time.Duration
		behind time.Duration // how far calendar time is behind; negative if it is ahead
	}{
		{"one is ahead", []time.Duration{year, 0, 0}, down, 0},
		{"one is behind", []time.Duration{0, -year, 0}, down, 0},
		{"two are ahead", []time.Duration{year, 0, year}, maxCredit, down - maxStep},
		{"two are behind", []time.Duration{-year, -year, 0}, 0, down},
		{"all are ahead", []time.Duration{year, year, year}, maxCredit, down - maxStep},
	} {
		t.Run(c.name, func(t *testing.T) {
			timed(t, 3, func(t *testing.T, s *Simulation) {
				time.Sleep(3 * time.Second)
				before, began := s.leads(t).node.Now().NowNs, time.Now()
				for i, h := range s.machines() {
					h.clock.step(c.steps[i])
				}
				s.stopAll(t, down)
				running := time.Since(began) - down
				given := time.Duration(s.leads(t).node.Now().NowNs - before)
				t.Logf("refill %v, calendar behind %v", given, s.leads(t).behind())
				require.InDelta(t, c.refill, given, float64(running+lastEntryAge+driftIn(down)))
				require.LessOrEqual(t, given, c.refill+running+driftIn(down))
				require.InDelta(t, c.behind, s.leads(t).behind(), float64(running+lastEntryAge+driftIn(down)))
			})
		})
	}
}

// TestStepsOfWallClocksGiveNothing checks that a step of every wall clock has no effect while the processes run. A
// step that an idle leader saw has no effect after a failover or a cold start either.
func TestStepsOfWallClocksGiveNothing(t *testing.T) {
	for _, step := range []time.Duration{-time.Hour, time.Hour} {
		t.Run(fmt.Sprint(step), func(t *testing.T) {
			timed(t, 3, func(t *testing.T, s *Simulation) {
				time.Sleep(3 * time.Second)
				before, began := s.leads(t).node.Now().NowNs, time.Now()
				agrees := func(when string) {
					passed, given := time.Since(began), time.Duration(s.leads(t).node.Now().NowNs-before)
					require.InDelta(t, passed, given, float64(driftIn(passed)+100*time.Millisecond), when)
				}
				for _, h := range s.machines() {
					h.clock.step(step)
				}
				time.Sleep(20 * time.Second)
				agrees("idle")
				s.leads(t).crash("killed", 100, 0)
				time.Sleep(5 * time.Second)
				agrees("failover")
				for _, h := range s.machines() {
					h.start()
				}
				time.Sleep(3 * time.Second)
				s.stopAll(t, 30*time.Second)
				agrees("cold start")
			})
		})
	}
}

// TestFailoversKeepTheTime checks that a hundred failovers lose little time. A new leader's clock continues from the
// arrival of the last entry, so the time before its election counts.
func TestFailoversKeepTheTime(t *testing.T) {
	timed(t, 3, func(t *testing.T, s *Simulation) {
		time.Sleep(3 * time.Second)
		before, began := s.leads(t).node.Now().NowNs, time.Now()
		const failovers = 100
		for range failovers {
			p := s.leads(t)
			p.crash("killed", 100, 0)
			require.True(t, s.within(maxRecovery, func() bool { return s.leads(t) != p }))
			p.host.start()
			require.True(t, s.answers())
			time.Sleep(300 * time.Millisecond)
		}
		passed, given := time.Since(began), time.Duration(s.leads(t).node.Now().NowNs-before)
		t.Logf("%d failovers in %v: limiter time lost %v, windows behind %v", failovers, passed, passed-given,
			s.leads(t).behind())
		require.LessOrEqual(t, given, passed+driftIn(passed))
		require.LessOrEqual(t, passed-given, 2*time.Second)
		require.LessOrEqual(t, s.leads(t).behind().Abs(), 2*time.Second)
	})
}

// TestAMemberThatStayedUpKnowsBetter checks that wall clocks which were set while two of three nodes were down have
// no effect. The third node's monotonic clock kept running, and the leader uses it even if another node leads.
func TestAMemberThatStayedUpKnowsBetter(t *testing.T) {
	timed(t, 3, func(t *testing.T, s *Simulation) {
		time.Sleep(3 * time.Second)
		before, began := s.leads(t).node.Now().NowNs, time.Now()
		led := 0 // how often a restarted node led: chance decides who leads
		for round := 0; round < 30 || led == 0 && round < 300; round++ {
			stays := s.machines()[round%3]
			for _, h := range s.machines() {
				if h != stays {
					h.running().crash("killed", 100, 0)
					h.clock.step(time.Hour)
				}
			}
			time.Sleep(2 * time.Second)
			for _, h := range s.machines() {
				h.start()
			}
			require.True(t, s.answers())
			if s.leads(t).host != stays {
				led++
			}
			passed, given := time.Since(began), time.Duration(s.leads(t).node.Now().NowNs-before)
			require.LessOrEqual(t, given, passed+driftIn(passed), "round %d", round)
			require.LessOrEqual(t, passed-given, 2*time.Second, "round %d", round)
			time.Sleep(2 * time.Second)
		}
		require.Positive(t, led, "a restarted node must lead at least once")
		t.Logf("%d times the leader had been down", led)
	})
}

// TestTimeFaultsGiveNoBurst checks that no more than burst + rate x time is admitted. The runs mix failovers, full
// restarts and clock steps in every order.
func TestTimeFaultsGiveNoBurst(t *testing.T) {
	mix := weights{"crash": 4, "transfer": 3, "restart all": 4, "wall clock step": 4, "partition": 2, "snapshot": 1,
		"monotonic clock back": 1}
	for i := range max(*seedsFlag/2, 1) {
		seed := *seedFlag + uint64(i)
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			r := simulate(t, Config{Seed: seed, Nodes: nodesOf(seed), weights: mix})
			require.Empty(t, r.Violations, r.Story())
			require.Positive(t, r.Decisions)
		})
	}
}

// TestTicksArePaced checks that an idle leader commits the time about once a second, also after its wall clock steps.
func TestTicksArePaced(t *testing.T) {
	timed(t, 3, func(t *testing.T, s *Simulation) {
		leader := s.leads(t)
		time.Sleep(3 * time.Second)
		for _, step := range []time.Duration{0, -time.Hour, time.Hour} {
			leader.host.clock.step(step)
			before := leader.node.Topology().AppliedIndex
			time.Sleep(20 * time.Second)
			require.InDelta(t, 18, leader.node.Topology().AppliedIndex-before, 4, "after a step of %v", step)
		}
	})
}
