package persistence

import (
	"time"

	"golang.org/x/sys/unix"
)

// rawMonotonic is CLOCK_MONOTONIC_RAW, interpolated by CLOCK_MONOTONIC, which Go reads without a system call.
var rawMonotonic = interpolated{exact: readRawMonotonic, cheap: sinceStart}

// MonotonicNs returns the time of CLOCK_MONOTONIC_RAW. Time daemons slew the clock CLOCK_MONOTONIC, by up to eight
// percent while they correct a large error, and limiters would then admit eight percent more. CLOCK_MONOTONIC_RAW runs
// at the speed of the crystal. Neither clock advances while the machine is suspended.
func (systemSource) MonotonicNs() int64 { return rawMonotonic.now() }

func readRawMonotonic() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC_RAW, &t); err != nil {
		panic("cannot read CLOCK_MONOTONIC_RAW: " + err.Error()) // Linux has had it since 2.6.28
	}
	return t.Nano()
}

var processStart = time.Now()

// sinceStart reads the monotonic clock of the Go runtime, which is CLOCK_MONOTONIC.
func sinceStart() int64 { return int64(time.Since(processStart)) }
