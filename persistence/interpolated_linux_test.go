package persistence

import (
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// scriptedClocks is an exact clock, and a cheap clock that runs at another speed.
type scriptedClocks struct {
	nowNs float64
	speed float64 // of the cheap clock
	reads int     // of the exact clock
	stall float64 // passes during the next reading of the exact clock
}

func (s *scriptedClocks) clock() *interpolated {
	exact := func() int64 {
		s.reads++
		ns := int64(s.nowNs)
		s.nowNs += s.stall
		s.stall = 0
		return ns
	}
	return &interpolated{exact: exact, cheap: func() int64 { return int64(s.nowNs * s.speed) }}
}

// TestInterpolatedClockIsExact checks that the time never goes back, and is never wrong by more than the clocks differ
// in one interval, whatever the speed of the cheap clock.
func TestInterpolatedClockIsExact(t *testing.T) {
	for _, speed := range []float64{0.9, 0.9995, 1, 1.0005, 1.1} {
		s := scriptedClocks{nowNs: 5e9, speed: speed}
		c := s.clock()
		bound := math.Abs(1/speed-1)*interpolateNs + 2
		random := rand.New(rand.NewPCG(1, 2))
		lastNs, worst, wentBack := int64(0), 0.0, 0
		for range 200_000 {
			s.nowNs += random.ExpFloat64() * 10_000
			ns := c.now()
			if ns < lastNs {
				wentBack++
			}
			lastNs, worst = ns, max(worst, math.Abs(s.nowNs-float64(ns)))
		}
		require.Zero(t, wentBack, "speed %v", speed)
		require.LessOrEqual(t, worst, bound, "speed %v", speed)
	}
}

// TestInterpolatedClockReadsRarely checks that a busy process reads the exact clock about once in interpolateNs.
func TestInterpolatedClockReadsRarely(t *testing.T) {
	s := scriptedClocks{nowNs: 5e9, speed: 1}
	c := s.clock()
	for range 100_000 {
		s.nowNs += 10_000
		c.now()
	}
	require.InDelta(t, 1000, s.reads, 10)
}

// TestInterpolatedClockAfterAPause checks that a reading during which the process was paused is not interpolated. The
// time would lag by the pause.
func TestInterpolatedClockAfterAPause(t *testing.T) {
	s := scriptedClocks{nowNs: 5e9, speed: 1, stall: 50e6}
	c := s.clock()
	c.now()
	s.nowNs += 1000
	require.EqualValues(t, s.nowNs, c.now())
	s.nowNs += 1000
	require.EqualValues(t, s.nowNs, c.now())
	require.Equal(t, 2, s.reads)
}

// TestInterpolatedClockOverACheapClockThatGoesBack checks that such a step neither moves the time back nor stops it.
func TestInterpolatedClockOverACheapClockThatGoesBack(t *testing.T) {
	exactNs, cheapNs := int64(5e9), int64(7e9)
	c := interpolated{exact: func() int64 { return exactNs }, cheap: func() int64 { return cheapNs }}
	c.now()
	cheapNs -= 3e9
	exactNs += 2e6
	require.Equal(t, exactNs, c.now())
	cheapNs, exactNs = cheapNs+1000, exactNs+1000
	require.Equal(t, exactNs, c.now())
}

// TestSystemSourceNeverGoesBack passes times from goroutine to goroutine. Each receiver's own time must not be earlier.
func TestSystemSourceNeverGoesBack(t *testing.T) {
	const rounds = 50_000
	times := make(chan int64)
	startNs := readRawMonotonic()
	var receivers sync.WaitGroup
	for range 4 {
		receivers.Go(func() {
			for ns := range times {
				if now := (systemSource{}).MonotonicNs(); now < ns {
					t.Errorf("%d after %d", now, ns)
				}
			}
		})
	}
	for range rounds {
		times <- systemSource{}.MonotonicNs()
	}
	close(times)
	receivers.Wait()
	gone := time.Duration(systemSource{}.MonotonicNs() - startNs)
	require.InDelta(t, time.Duration(readRawMonotonic()-startNs), gone, float64(time.Second))
}
