package chaos

import (
	"testing"
	"time"
)

const (
	// These are the longest silences that the documents promise, at the server's default timings.
	promisedFrozen = 3 * time.Second
	promisedSlow   = 4 * time.Second
	// The documents promise no time for a restart of all nodes. It is compared with the time that a node may take to
	// start.
	promisedPower = upTimeout
	// frozenFor is longer than the watchdog allows a write to take. slowFor is longer than a slow disk needs for
	// several snapshots.
	frozenFor, slowFor, pausedFor = 8 * time.Second, 10 * time.Second, 7 * time.Second
	slowIOPS                      = 20
)

// silences are the faults whose silence TestSilence measures.
var silences = []struct {
	name     string
	promised time.Duration
	mayExit  bool // the affected node may end by itself
	hit      func(s *stage, t *testing.T)
}{
	{"frozen disk", promisedFrozen, true, (*stage).freeze},
	{"slow disk", promisedSlow, true, (*stage).slow},
	{"pause", promisedFailover, false, (*stage).pauseLeader},
	{"kill -9", promisedFailover, false, (*stage).killLeader},
	{"power loss of all", promisedPower, false, (*stage).losePower},
}

// TestSilence measures the longest time without a decision while a fault affects the leader. It needs root and loop
// devices, and takes a quarter of an hour.
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
