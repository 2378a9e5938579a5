package chaos

import (
	"testing"
	"time"
)

const (
	// What the documents promise of silences, at the server's default timings.
	promisedFrozen = 3 * time.Second
	promisedSlow   = 4 * time.Second
	// A restart of all nodes is not promised to take any time; it is measured beside the
	// time that a node may take to come up.
	promisedPower = upTimeout
	// frozenFor is longer than the watchdog lets a write take, slowFor than a slow
	// disk takes for some snapshots.
	frozenFor, slowFor, pausedFor = 8 * time.Second, 10 * time.Second, 7 * time.Second
	slowIOPS                      = 20
)

// silences are the faults that TestSilence measures.
var silences = []struct {
	name     string
	promised time.Duration
	mayExit  bool // the node that is hit may end by itself
	hit      func(s *stage, t *testing.T)
}{
	{"frozen disk", promisedFrozen, true, (*stage).freeze},
	{"slow disk", promisedSlow, true, (*stage).slow},
	{"pause", promisedFailover, false, (*stage).pauseLeader},
	{"kill -9", promisedFailover, false, (*stage).killLeader},
	{"power loss of all", promisedPower, false, (*stage).losePower},
}

// TestSilence measures the longest time without a decision while a fault hits the
// leader. It needs root and loop devices, and takes a quarter of an hour.
func TestSilence(t *testing.T) {
	if !*silence {
		t.Skip("takes a quarter of an hour: only with -chaos.silence")
	}
	for _, fault := range silences {
		t.Run(fault.name, func(t *testing.T) {
			s := newStage(t)
			var gaps []time.Duration
			for range *repeat {
				s.next(t)
				s.leader.Excuse(fault.mayExit)
				from := s.probe.Now()
				fault.hit(s, t)
				s.leader.Excuse(false)
				gaps = append(gaps, s.probe.LongestGap(from, s.probe.Now()))
				t.Logf("%s of %s: %v", fault.name, s.leader.ID, gaps[len(gaps)-1].Round(time.Millisecond))
			}
			summarize(t, "silence: "+fault.name, gaps, fault.promised)
			t.Logf("nodes that ended by themselves: %d", s.exits.Load())
		})
	}
}
