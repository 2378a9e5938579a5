package sim

import (
	"sync/atomic"
	"time"
)

// maxDriftPPM is the maximum drift of a clock, in parts per million.
const maxDriftPPM = 200

// clock is the hardware clock of one machine, and the persistence.Source of its node. It runs at its own rate, and its
// wall time steps.
type clock struct {
	start    time.Time
	driftPPM int64        // -maxDriftPPM to maxDriftPPM
	baseNs   atomic.Int64 // of the monotonic clock; each boot has its own
	stepNs   atomic.Int64
	backNs   atomic.Int64
}

func newClock(driftPPM, baseNs int64) *clock {
	c := &clock{start: time.Now(), driftPPM: driftPPM}
	c.baseNs.Store(baseNs)
	return c
}

// MonotonicNs returns a time that runs at the clock's own rate.
func (c *clock) MonotonicNs() int64 {
	ns := time.Since(c.start).Nanoseconds()
	return c.baseNs.Load() + ns + ns*c.driftPPM/1_000_000 - c.backNs.Load()
}

// WallNs returns true time with the clock's drift and steps.
func (c *clock) WallNs() int64 {
	ns := time.Since(c.start).Nanoseconds()
	return c.start.UnixNano() + ns + ns*c.driftPPM/1_000_000 + c.stepNs.Load()
}

// step moves the wall clock.
func (c *clock) step(by time.Duration) { c.stepNs.Add(int64(by)) }

// reboot restarts the monotonic clock at zero. No process survives it.
func (c *clock) reboot() { c.baseNs.Add(-c.MonotonicNs()) }

// back sets the monotonic clock back under the processes that read it. A correct machine never does that. It models a
// faulty hypervisor or kernel.
func (c *clock) back(by time.Duration) { c.backNs.Add(int64(by)) }

// wentBack returns the sum of the steps back of the monotonic clock.
func (c *clock) wentBack() time.Duration { return time.Duration(c.backNs.Load()) }
