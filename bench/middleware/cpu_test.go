package middleware

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// cpuOf returns the processor time of all threads of some processes. The kernel reports it in nanoseconds, but /proc
// counts ticks.
func cpuOf(t *testing.T, pids ...int) (total time.Duration) {
	for _, pid := range pids {
		var used unix.Timespec
		require.NoError(t, unix.ClockGettime(cpuClock(pid), &used))
		total += time.Duration(used.Nano())
	}
	return total
}

// cpuClock returns the clock id of a process as clock_getcpuclockid(3) does: the complement of its id, shifted by
// three bits. The value 2 in these bits selects the scheduler's count.
func cpuClock(pid int) int32 {
	const scheduler = 2
	return int32(^pid<<3 | scheduler)
}
