package persistence

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
)

func TestAStartedClockGoesOnFromItsStamp(t *testing.T) {
	at := engine.Stamp{NowNs: 42e9, WallOffsetNs: noon - 42e9}
	src := &fakeSource{monoNs: 1e15, wall: noon + int64(time.Hour)}
	c := StartClock(src, at)
	require.Equal(t, at, c.Now(), "the wall clock must not count")
	src.step(-72 * time.Hour)
	src.pass(3 * time.Second)
	require.Equal(t, engine.Stamp{NowNs: 45e9, WallOffsetNs: at.WallOffsetNs}, c.Now(),
		"only monotonic time must count")
	require.False(t, c.Advance(time.Hour))

	c.Slew()
	src.pass(2 * time.Second)
	now := c.Now()
	require.EqualValues(t, 47e9, now.NowNs)
	require.Equal(t, -time.Millisecond, time.Duration(now.WallOffsetNs-at.WallOffsetNs),
		"the slew must be 0.05 % of two seconds")
}

func TestAStartedTestClockStandsStill(t *testing.T) {
	at := engine.Stamp{NowNs: 42e9, WallOffsetNs: 7}
	c := StartTestClock(at)
	require.Equal(t, at, c.Now())
	require.True(t, c.Advance(time.Second))
	require.Equal(t, engine.Stamp{NowNs: 43e9, WallOffsetNs: 7}, c.Now())
	require.Equal(t, Record{LimiterNs: 43e9, OffsetNs: 7, WallNs: 43e9 + 7, Test: true}, c.Record())

	late := StartTestClock(engine.Stamp{NowNs: maxLimiterNs + 5})
	require.True(t, late.Advance(time.Second))
	require.Equal(t, maxLimiterNs+5, late.Now().NowNs, "limiter time must never go back")
}

func TestTheClockOfThisMachine(t *testing.T) {
	c := StartClock(SystemSource(), engine.Stamp{NowNs: 1e9})
	require.GreaterOrEqual(t, c.Now().NowNs, int64(1e9))
	require.Less(t, c.Now().NowNs, int64(1e9)+int64(time.Hour))
}
