package middleware

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// cpuOf is the processor time that some processes have used so far, all their threads. The
// kernel keeps it to the nanosecond, where /proc counts ticks.
func cpuOf(t *testing.T, pids ...int) (total time.Duration) {
	for _, pid := range pids {
		var used unix.Timespec
		require.NoError(t, unix.ClockGettime(cpuClock(pid), &used))
		total += time.Duration(used.Nano())
	}
	return total
}

// cpuClock is what clock_getcpuclockid(3) makes of a process: the complement of its id
// above three bits, of which 2 asks for the scheduler's count.
func cpuClock(pid int) int32 {
	const scheduler = 2
	return int32(^pid<<3 | scheduler)
}
