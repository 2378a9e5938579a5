package main

import (
	"os"
	"os/exec"
	"runtime"
	"runtime/metrics"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/persistence"
)

func TestPercentFor(t *testing.T) {
	for live, want := range map[uint64]int{0: 100, 1 << 20: 100, 2 << 20: 100, 4 << 20: 50, 20 << 20: 10,
		50 << 20: 4, 1 << 40: 4} {
		require.Equal(t, want, percentFor(live, spareGarbage), "%d bytes", live)
	}
}

// TestSpareGarbageFollowsTheLoad checks that frequent collections double the spare garbage up to its bound, and rare
// ones halve it. The bound of a server that runs alone is the least spare garbage, so nothing changes there.
func TestSpareGarbageFollowsTheLoad(t *testing.T) {
	require.EqualValues(t, 2*spareGarbage, nextSpare(spareGarbage, maxSpareGarbage, time.Millisecond))
	require.EqualValues(t, maxSpareGarbage, nextSpare(maxSpareGarbage, maxSpareGarbage, time.Millisecond))
	require.EqualValues(t, 8<<20, nextSpare(8<<20, maxSpareGarbage, calmCollector/2))
	require.EqualValues(t, 4<<20, nextSpare(8<<20, maxSpareGarbage, time.Minute))
	require.EqualValues(t, spareGarbage, nextSpare(spareGarbage, maxSpareGarbage, time.Minute))
	require.EqualValues(t, spareGarbage, nextSpare(spareGarbage, spareGarbage, time.Millisecond))
	require.Equal(t, 80, percentFor(20<<20, maxSpareGarbage))
}

// TestCollectorFollowsTheHeap checks that the target changes when the heap grows and when it shrinks. Frequent
// collections change it only if the spare garbage may grow.
func TestCollectorFollowsTheHeap(t *testing.T) {
	h := newHeapTarget()
	require.EqualValues(t, spareGarbage, h.most.Load(), "the bound of a server that runs alone")
	h.watch()
	target := func() uint64 {
		runtime.GC()
		s := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		metrics.Read(s)
		return s[0].Value.Uint64()
	}
	large := make([]byte, 64<<20)
	require.Eventually(t, func() bool { return target() == garbagePercent }, time.Minute, time.Millisecond)
	h.most.Store(maxSpareGarbage)
	require.Eventually(t, func() bool { return target() >= 2*garbagePercent }, time.Minute, time.Millisecond)
	runtime.KeepAlive(large)
	require.Eventually(t, func() bool { return target() > 8*garbagePercent }, time.Minute, time.Millisecond)
}

// TestCollectorWaitsForALoad checks that the target is higher while one of several loads runs, and follows the heap at
// once when the last has ended.
func TestCollectorWaitsForALoad(t *testing.T) {
	h := newHeapTarget()
	large := make([]byte, 64<<20)
	runtime.GC()
	h.adjust()
	require.Equal(t, garbagePercent, h.percent)
	first, second := h.load(), h.load()
	h.adjust()
	require.Equal(t, loadPercent, h.percent)
	second()
	require.Equal(t, loadPercent, h.percent, "another load runs")
	first()
	require.Equal(t, garbagePercent, h.percent)
	runtime.KeepAlive(large)

	p := &persistence.Progress{}
	t.Setenv("GOGC", "77")
	watchCollector(p)
	require.Nil(t, p.OnLoad, "the user's target stays")
	t.Setenv("GOGC", "")
	watchCollector(p)
	require.NotNil(t, p.OnLoad)
}

// collectedKeys take more than twice spareGarbage, so a server with them must not have the usual target. It has
// collected a few times while they were created.
const collectedKeys = 200_000

// TestServersSetTheirCollector checks that a server with a large heap keeps little garbage, unless configured
// otherwise.
func TestServersSetTheirCollector(t *testing.T) {
	target := func(p *process) float64 { return p.metric("go_gc_gogc_percent") }
	p := startHolding(t, "", collectedKeys)
	require.Eventually(t, func() bool { // each look makes garbage, for the next collection
		return target(p) >= garbagePercent && target(p) < 100
	}, patience, time.Millisecond)
	require.EqualValues(t, 77, target(startHolding(t, "77", collectedKeys)))
}

// TestNodesWithALogCollectRarelyUnderLoad checks that a loaded server with a log may keep more garbage than one without,
// in a cluster and alone.
func TestNodesWithALogCollectRarelyUnderLoad(t *testing.T) {
	for name, start := range map[string]func() *process{
		"cluster": func() *process { return startCluster(t, 1)[0] },
		"alone": func() *process {
			return startCommand(t, exec.Command(binary), "--durability=fsync", "--raft-addr=127.0.0.1:0",
				"--data-dir="+t.TempDir())
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := start()
			conn := p.dial()
			require.Eventually(t, func() bool {
				for key := range 1000 {
					require.NoError(t, conn.Send("RL.FIXED", key, "1h", 5))
				}
				_, err := conn.Do("") // reads the answers
				require.NoError(t, err)
				return p.metric("go_gc_gogc_percent") > 100
			}, patience, time.Millisecond)
		})
	}
}

// startHolding starts a server with a GOGC and this many keys.
func startHolding(t *testing.T, gogc string, keys int) *process {
	cmd := exec.Command(binary)
	cmd.Env = append(os.Environ(), "GOGC="+gogc)
	p := startCommand(t, cmd, "--data-dir=")
	conn := p.dial()
	for key := range keys {
		require.NoError(t, conn.Send("RL.FIXED", key, "1h", 5))
		if (key+1)%1000 == 0 {
			_, err := conn.Do("") // reads the answers
			require.NoError(t, err)
		}
	}
	return p
}
