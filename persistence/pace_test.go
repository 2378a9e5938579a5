package persistence

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSpread checks the pauses of a job. A short job pauses three times as long as it works. A longer job pauses less,
// so that it ends in time and still pauses after each step. A job whose work takes longer than its time soon stops
// pausing.
func TestSpread(t *testing.T) {
	const over = time.Second
	for name, c := range map[string]struct {
		step     time.Duration // each of ten steps
		hurry    bool
		min, max time.Duration
	}{
		"short":      {time.Millisecond, false, 39 * time.Millisecond, 40 * time.Millisecond},
		"little":     {10 * time.Millisecond, false, 300 * time.Millisecond, 400 * time.Millisecond},
		"much":       {40 * time.Millisecond, false, 800 * time.Millisecond, over},
		"too much":   {300 * time.Millisecond, false, 3 * time.Second, 3*time.Second + over},
		"in a hurry": {10 * time.Millisecond, true, 100 * time.Millisecond, 100 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := spread{over: over}
			s.began = time.Now().Add(-time.Hour) // the start of a previous job
			s.begin()
			longest, from := time.Duration(0), time.Now()
			for range 10 {
				time.Sleep(c.step)
				at := time.Now()
				if s.pause(c.hurry); time.Since(at) > 0 {
					longest, from = max(longest, at.Sub(from)), time.Now()
				}
			}
			require.GreaterOrEqual(t, time.Since(s.began), c.min, name)
			require.LessOrEqual(t, time.Since(s.began), c.max, name)
			if c.max <= over && !c.hurry {
				require.Equal(t, c.step, longest, "%s: each step must be followed by a pause", name)
			}
		})
	}
}

// TestFlushesWithinTheSecond checks that the interval between flushes and the longest time of a flush together are less
// than a second. So a change that just missed a flush is on disk within a second.
func TestFlushesWithinTheSecond(t *testing.T) {
	const every = float64(flushEvery)
	require.Less(t, every+spreadOver*every, float64(time.Second))
}
