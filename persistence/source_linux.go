package persistence

import "golang.org/x/sys/unix"

// monotonicNs reads CLOCK_MONOTONIC_RAW. The plain monotonic clock is slewed by
// time daemons, by as much as eight percent while one corrects a large error, and
// every percent would be a percent more admitted. The raw one runs as the crystal
// does. Neither advances while the machine is suspended.
func monotonicNs() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC_RAW, &t); err != nil {
		panic("CLOCK_MONOTONIC_RAW cannot be read: " + err.Error()) // Linux has had it since 2.6.28
	}
	return t.Nano()
}
