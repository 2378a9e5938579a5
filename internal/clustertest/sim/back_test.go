package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
)

// A correct machine never moves its monotonic clock backwards. These tests check what docs/operations.md#time
// promises for a machine that does.

// lostSince returns how far limiter time has fallen behind real time since began.
func (s *Simulation) lostSince(t *testing.T, began time.Time, nowNs int64) time.Duration {
	return time.Since(began) - time.Duration(s.leads(t).node.Now().NowNs-nowNs)
}

// TestAClockThatGoesBackHoldsTimeUp checks that limiter time loses exactly the time by which the leader's clock went
// back.
func TestAClockThatGoesBackHoldsTimeUp(t *testing.T) {
	timed(t, 5, func(t *testing.T, s *Simulation) {
		const back, steps = 700 * time.Millisecond, 20
		time.Sleep(3 * time.Second)
		leader := s.leads(t)
		before, began := leader.node.Now().NowNs, time.Now()
		for range steps {
			leader.host.clock.back(back)
			time.Sleep(back / 2)
		}
		require.Same(t, leader, s.leads(t))
		require.InDelta(t, steps*back, s.lostSince(t, began, before), float64(driftIn(steps*back)))
		time.Sleep(steps * back)
		require.InDelta(t, steps*back, s.lostSince(t, began, before), float64(driftIn(2*steps*back)))
	})
}

// TestTheNextLeaderEndsTheStandstill checks that a new leader's clock continues from the last stamp at once. Its own
// clock also went back after that entry had arrived.
func TestTheNextLeaderEndsTheStandstill(t *testing.T) {
	timed(t, 3, func(t *testing.T, s *Simulation) {
		const stands, leads = 4 * time.Second, 20 * time.Second
		time.Sleep(3 * time.Second)
		leader := s.leads(t)
		before, began := leader.node.Now().NowNs, time.Now()
		leader.host.clock.back(time.Hour)
		time.Sleep(stands)
		for _, h := range s.machines() {
			h.clock.back(time.Hour)
		}
		leader.crash("killed", 100, 0)
		time.Sleep(leads)
		lost := s.lostSince(t, began, before)
		require.LessOrEqual(t, lost, stands+2*time.Second)
		require.GreaterOrEqual(t, lost, -driftIn(stands+leads))
	})
}

// TestAClockThatGoesBackDeniesNothingMore checks that a request is admitted if time up to the last entry refilled its
// tokens. It covers denials with and without a log entry.
func TestAClockThatGoesBackDeniesNothingMore(t *testing.T) {
	perMinute := engine.Limit{
		Algorithm: engine.TokenBucket, Rate: engine.Rate{Units: 1, PerNs: int64(time.Minute)}, Max: 2,
	}
	// The leader answers from the log, checks its leadership, or checks it early.
	for _, denied := range []int{0, 1, 2 * denialsTried} {
		t.Run(fmt.Sprint(denied, " denied"), func(t *testing.T) {
			timed(t, 3, func(t *testing.T, s *Simulation) {
				leader := s.leads(t)
				admitted := func(key string) bool {
					out, err := leader.ask([]engine.Op{{Key: []byte(key), Cost: 1, Limit: perMinute}}, false)
					require.NoError(t, err)
					return out[0].Allowed == 1
				}
				require.True(t, admitted("key"))
				require.True(t, admitted("key"))
				for range denied {
					require.False(t, admitted("key"))
				}
				time.Sleep(65 * time.Second) // an idle leader commits the time
				leader.host.clock.back(65 * time.Second)
				require.True(t, admitted("key"), "the tokens refilled before the clock went back")
				require.False(t, admitted("key"), "nothing refills while limiter time stands still")
				time.Sleep(63 * time.Second)
				require.False(t, admitted("key"))
				time.Sleep(60 * time.Second)
				require.True(t, admitted("key"), "limiter time continues once the clock has caught up")
				require.False(t, admitted("key"))
			})
		})
	}
}

// TestManyClockStepsBackGiveNothing checks that more than 50 steps back break no promise. Limiter time then stands
// still for longer than holds usually last.
func TestManyClockStepsBackGiveNothing(t *testing.T) {
	const seed = 219
	r := simulate(t, Config{Seed: seed, Nodes: 5, weights: weights{"monotonic clock back": 1}})
	require.Empty(t, r.Violations, r.Story())
	require.Greater(t, r.Faults["monotonic clock back"], 50)
}
