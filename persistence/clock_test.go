package persistence

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const noon = int64(1_800_000_000) * int64(time.Second)

func TestFirstStartIsTheWallClock(t *testing.T) {
	c := newRawClock(&fakeSource{monoNs: 5, wall: noon}, nil, Downtime{})
	require.Equal(t, noon, c.Now().NowNs)
	require.Zero(t, c.Now().WallOffsetNs)
}

func TestFirstStartWithASenselessWallClock(t *testing.T) {
	for _, wall := range []int64{-1 << 62, 0, 1<<63 - 1} {
		now := newRawClock(&fakeSource{wall: wall}, nil, Downtime{}).Now().NowNs
		require.GreaterOrEqual(t, now, minLimiterNs)
		require.LessOrEqual(t, now, maxLimiterNs)
	}
}

func TestLimiterTimeIgnoresStepsOfTheWallClock(t *testing.T) {
	src := &fakeSource{wall: noon}
	c := newRawClock(src, nil, Downtime{})
	src.pass(time.Second)
	for _, step := range []time.Duration{time.Hour, -48 * time.Hour} {
		before := c.Now().NowNs
		src.step(step)
		require.Equal(t, before, c.Now().NowNs)
	}
}

func TestRestartCredit(t *testing.T) {
	last := &Record{LimiterNs: noon, WallNs: noon + 5, OffsetNs: 5}
	for _, c := range []struct {
		name       string
		wallAhead  time.Duration
		wantCredit time.Duration
		wantWall   int64 // the wall time at which calendar windows continue
	}{
		{"a minute down", time.Minute, time.Minute, noon + 5 + int64(time.Minute)},
		{"no time", 0, 0, noon + 5},
		{"wall clock stepped back", -time.Hour, 0, noon + 5},
		{"longer than the credit", 72 * time.Hour, 24 * time.Hour, noon + 5 + int64(72*time.Hour)},
		{"longer than the step", 1000 * time.Hour, 24 * time.Hour, noon + 5 + int64(100*time.Hour)},
	} {
		t.Run(c.name, func(t *testing.T) {
			src := &fakeSource{wall: last.WallNs + int64(c.wallAhead)}
			at := newRawClock(src, last, Downtime{24 * time.Hour, 100 * time.Hour}).Now()
			require.Equal(t, int64(c.wantCredit), at.NowNs-last.LimiterNs)
			require.Equal(t, c.wantWall, at.NowNs+at.WallOffsetNs)
		})
	}
}

func TestOffsetIsSlewedTowardTheWallClock(t *testing.T) {
	for _, step := range []time.Duration{10 * time.Millisecond, -10 * time.Millisecond} {
		src := &fakeSource{wall: noon}
		c := newRawClock(src, nil, Downtime{})
		src.step(step)
		for range 10 {
			src.pass(time.Second)
			c.Slew()
		}
		at := c.Now()
		gap := src.WallNs() - at.NowNs - at.WallOffsetNs
		require.Equal(t, step*11/20, time.Duration(gap), "nine seconds must slew by 0.5 ms each")
		for range 20 {
			src.pass(time.Second)
			c.Slew()
		}
		at = c.Now()
		require.Equal(t, src.WallNs(), at.NowNs+at.WallOffsetNs,
			"the wall time must arrive at the clock and not overshoot")
	}
}

// TestWallTimeIsContinuous checks that the wall time of calendar windows never goes back. Its speed differs from that
// of real time by at most 0.05 %, whatever the wall clock does.
func TestWallTimeIsContinuous(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	src := &fakeSource{wall: noon}
	c := newRawClock(src, nil, Downtime{})
	last := c.Now()
	for range 100_000 {
		d := time.Duration(rng.Int64N(int64(50 * time.Millisecond)))
		src.pass(d)
		if rng.IntN(50) == 0 {
			src.step(time.Duration(rng.Int64N(int64(2*time.Hour))) - time.Hour)
		}
		if rng.IntN(20) == 0 {
			c.Slew()
		}
		at := c.Now()
		require.Equal(t, int64(d), at.NowNs-last.NowNs)
		moved := at.WallOffsetNs - last.WallOffsetNs
		require.LessOrEqual(t, max(moved, -moved), int64(d)/slewDivisor+1)
		last = at
	}
}

func TestTestClock(t *testing.T) {
	src := &fakeSource{wall: noon + 123}
	c := newTestClock(src, nil)
	require.Equal(t, noon, c.Now().NowNs)
	src.pass(time.Hour)
	c.Slew()
	require.Equal(t, noon, c.Now().NowNs, "the test clock must stand still")
	require.True(t, c.Advance(time.Minute))
	require.True(t, c.Advance(-time.Hour), "a negative advance must be ignored")
	require.Equal(t, noon+int64(time.Minute), c.Now().NowNs)

	r := c.Record()
	require.True(t, r.Test)
	require.Equal(t, c.Now(), newTestClock(src, &r).Now(), "a restart must continue from the record")
	r.OffsetNs = int64(time.Hour)
	require.Equal(t, r.OffsetNs, newTestClock(src, &r).Now().WallOffsetNs,
		"a restart must keep the offset of calendar windows")
	c.Advance(1<<63 - 1)
	require.Equal(t, maxLimiterNs, c.Now().NowNs)
}

func TestSystemSource(t *testing.T) {
	src := systemSource{}
	a := src.MonotonicNs()
	require.GreaterOrEqual(t, src.MonotonicNs(), a)
	require.InDelta(t, float64(time.Now().UnixNano()), float64(src.WallNs()), float64(time.Minute))
	require.False(t, newRawClock(src, nil, Downtime{}).Advance(time.Hour))
}
