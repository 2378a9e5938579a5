package sim

import (
	"sync/atomic"
	"time"
)

// maxDriftPPM is how far a crystal may be off, in parts per million.
const maxDriftPPM = 200

// clock is the hardware clock of one machine, as the persistence.Source of its
// node: it runs at its own rate, and its wall time steps.
type clock struct {
	start    time.Time
	baseNs   int64
	driftPPM int64 // -maxDriftPPM to maxDriftPPM
	stepNs   atomic.Int64
	backNs   atomic.Int64
}

func newClock(driftPPM, baseNs int64) *clock {
	return &clock{start: time.Now(), baseNs: baseNs, driftPPM: driftPPM}
}

// MonotonicNs runs at the clock's own rate.
func (c *clock) MonotonicNs() int64 {
	ns := time.Since(c.start).Nanoseconds()
	return c.baseNs + ns + ns*c.driftPPM/1_000_000 - c.backNs.Load()
}

// WallNs is true time with the clock's drift and its steps.
func (c *clock) WallNs() int64 {
	ns := time.Since(c.start).Nanoseconds()
	return c.start.UnixNano() + ns + ns*c.driftPPM/1_000_000 + c.stepNs.Load()
}

// step moves the wall clock.
func (c *clock) step(by time.Duration) { c.stepNs.Add(int64(by)) }

// back sets the monotonic clock back, which hardware should never do.
func (c *clock) back(by time.Duration) { c.backNs.Add(int64(by)) }
