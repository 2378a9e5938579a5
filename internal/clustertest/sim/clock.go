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

// MonotonicNs runs at the clock's own rate.
func (c *clock) MonotonicNs() int64 {
	ns := time.Since(c.start).Nanoseconds()
	return c.baseNs.Load() + ns + ns*c.driftPPM/1_000_000 - c.backNs.Load()
}

// WallNs is true time with the clock's drift and its steps.
func (c *clock) WallNs() int64 {
	ns := time.Since(c.start).Nanoseconds()
	return c.start.UnixNano() + ns + ns*c.driftPPM/1_000_000 + c.stepNs.Load()
}

// step moves the wall clock.
func (c *clock) step(by time.Duration) { c.stepNs.Add(int64(by)) }

// reboot begins the monotonic clock at zero. No process outlives it.
func (c *clock) reboot() { c.baseNs.Add(-c.MonotonicNs()) }

// back sets the monotonic clock back under the processes that read it. No sound machine does
// that: it stands for a hypervisor or a kernel that breaks its word.
func (c *clock) back(by time.Duration) { c.backNs.Add(int64(by)) }

// wentBack is how far the monotonic clock went back in all.
func (c *clock) wentBack() time.Duration { return time.Duration(c.backNs.Load()) }
