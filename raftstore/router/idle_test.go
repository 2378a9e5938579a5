package router_test

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/weir-project/weir/raftstore"
)

// cost is the use of resources by this process.
type cost struct {
	cpu                              time.Duration
	goroutines, files, threads, heap float64
	resident                         float64
}

func measured(t *testing.T) (c cost) {
	t.Helper()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	c.heap = float64(m.HeapAlloc + m.StackInuse)
	files, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	for _, line := range strings.Split(string(status), "\n") {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		n, _ := strconv.ParseFloat(fields[1], 64)
		switch fields[0] {
		case "VmRSS:":
			c.resident = n * 1024
		case "Threads:":
			c.threads = n
		}
	}
	c.goroutines, c.files, c.cpu = float64(runtime.NumGoroutine()), float64(len(files)), cpuTime(t)
	return c
}

func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var u unix.Rusage
	require.NoError(t, unix.Getrusage(unix.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestIdleCost prints what an idle replica costs, for each number of groups from 2 in WEIRTEST_IDLE_GROUPS. Three
// nodes run in this process for WEIRTEST_IDLE_TIME after all groups have a leader:
//
//	WEIRTEST_IDLE_GROUPS=4,16,64 go test ./raftstore/router -run TestIdleCost -v
func TestIdleCost(t *testing.T) { forIdleGroups(t, idleCost) }

// forIdleGroups measures each number of groups that the environment names, or skips the test.
func forIdleGroups(t *testing.T, measure func(t *testing.T, groups int, window time.Duration)) {
	sizes := os.Getenv("WEIRTEST_IDLE_GROUPS")
	if sizes == "" {
		t.Skip("set WEIRTEST_IDLE_GROUPS to numbers of groups, such as 4,16,64")
	}
	window := 20 * time.Second
	if s := os.Getenv("WEIRTEST_IDLE_TIME"); s != "" {
		var err error
		window, err = time.ParseDuration(s)
		require.NoError(t, err)
	}
	for _, s := range strings.Split(sizes, ",") {
		groups, err := strconv.Atoi(s)
		require.NoError(t, err)
		t.Run(s, func(t *testing.T) { measure(t, groups, window) })
	}
}

func idleCost(t *testing.T, groups int, window time.Duration) {
	const size = 3
	empty := measured(t)
	c := newTier(t, size, groups, func(o *raftstore.Options) { o.Heartbeat = 0 })
	for _, n := range c.nodes {
		c.led(n)
	}
	time.Sleep(window / 4) // connections open, and the first status arrives
	before, began := measured(t), time.Now()
	time.Sleep(window)
	took := time.Since(began)
	used := cpuTime(t) - before.cpu
	after := measured(t)
	replicas := float64(size * groups)
	const mib = 1 << 20
	t.Logf("%d groups: of a core %.3f %% a replica (%.1f %% together), %.1f goroutines, %.1f descriptors, "+
		"%.1f threads, heap and stacks %.3f MiB, resident %.3f MiB", groups, 100*used.Seconds()/took.Seconds()/replicas,
		100*used.Seconds()/took.Seconds(), (after.goroutines-empty.goroutines)/replicas,
		(after.files-empty.files)/replicas, (after.threads-empty.threads)/replicas,
		(after.heap-empty.heap)/replicas/mib, (after.resident-empty.resident)/replicas/mib)
	require.Empty(t, c.fatal)
}
