package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
)

// No sound machine has a monotonic clock that goes back while it runs. These tests hold what
// docs/operations.md#time says of one that does.

// lostSince is how much less limiter time than real time has passed.
func (s *Simulation) lostSince(t *testing.T, began time.Time, nowNs int64) time.Duration {
	return time.Since(began) - time.Duration(s.leads(t).node.Now().NowNs-nowNs)
}

// TestAClockThatGoesBackHoldsTimeUp: limiter time loses what the leader's clock went back, and
// no more.
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

// TestTheNextLeaderEndsTheStandstill: its clock goes on from the last stamp at once, also
// where it went back after that entry had arrived.
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

// TestAClockThatGoesBackDeniesNothingMore: what the last entry had time for is not denied,
// whether a denial takes an entry or not.
func TestAClockThatGoesBackDeniesNothingMore(t *testing.T) {
	perMinute := engine.Limit{
		Algorithm: engine.TokenBucket, Rate: engine.Rate{Units: 1, PerNs: int64(time.Minute)}, Max: 2,
	}
	for _, denied := range []int{0, 1, 2 * denialsTried} { // it does not look for denials, looks, and asks ahead
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
				require.True(t, admitted("key"), "there was time for it when the clock went back")
				require.False(t, admitted("key"), "nothing refills while time stands still")
				time.Sleep(63 * time.Second)
				require.False(t, admitted("key"))
				time.Sleep(60 * time.Second)
				require.True(t, admitted("key"), "it goes on where the clock is")
				require.False(t, admitted("key"))
			})
		})
	}
}

// TestDozensOfStepsBackGiveNothing: limiter time is still held up when the clients of this run
// have gone, by more than holds take to end otherwise.
func TestDozensOfStepsBackGiveNothing(t *testing.T) {
	const seed = 202
	r := simulate(t, Config{Seed: seed, Nodes: 5, weights: weights{"monotonic clock back": 1}})
	require.Empty(t, r.Violations, r.Story())
	require.Greater(t, r.Faults["monotonic clock back"], 50)
}
