package persistence

import "golang.org/x/sys/unix"

// MonotonicNs reads CLOCK_MONOTONIC_RAW. Time daemons slew the clock CLOCK_MONOTONIC, by up to eight percent while they
// correct a large error, and limiters would then admit eight percent more. CLOCK_MONOTONIC_RAW runs at the speed of the
// crystal. Neither clock advances while the machine is suspended.
func (systemSource) MonotonicNs() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC_RAW, &t); err != nil {
		panic("cannot read CLOCK_MONOTONIC_RAW: " + err.Error()) // Linux has had it since 2.6.28
	}
	return t.Nano()
}
