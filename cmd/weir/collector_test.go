package main

import (
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPercentFor(t *testing.T) {
	for live, want := range map[uint64]int{0: 100, 1 << 20: 100, 2 << 20: 100, 4 << 20: 50, 20 << 20: 25,
		50 << 20: 25, 1 << 40: 25} {
		require.Equal(t, want, percentFor(live, spareGarbage), "%d bytes", live)
	}
}

// TestSpareGarbageFollowsTheLoad checks that frequent collections double the spare garbage up to its bound, and rare
// ones halve it.
func TestSpareGarbageFollowsTheLoad(t *testing.T) {
	require.EqualValues(t, 2*spareGarbage, nextSpare(spareGarbage, time.Millisecond))
	require.EqualValues(t, maxSpareGarbage, nextSpare(maxSpareGarbage, time.Millisecond))
	require.EqualValues(t, 8<<20, nextSpare(8<<20, calmCollector/2))
	require.EqualValues(t, 4<<20, nextSpare(8<<20, time.Minute))
	require.EqualValues(t, spareGarbage, nextSpare(spareGarbage, time.Minute))
	require.Equal(t, 80, percentFor(20<<20, maxSpareGarbage))
}

// TestCollectorFollowsTheHeap checks that the target changes when the heap grows and when it shrinks, and that frequent
// collections raise it.
func TestCollectorFollowsTheHeap(t *testing.T) {
	h := newHeapTarget()
	large := make([]byte, 64<<20)
	runtime.GC()
	h.adjust()
	require.Equal(t, garbagePercent, h.percent)
	runtime.KeepAlive(large)
	runtime.GC()
	h.adjust()
	small := h.percent
	require.Greater(t, small, garbagePercent)
	for range 5 {
		h.note(h.lastAt)
	}
	h.adjust()
	require.Greater(t, h.percent, small)
	h.watch()
	require.Eventually(t, func() bool {
		runtime.GC()
		s := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		metrics.Read(s)
		return s[0].Value.Uint64() == uint64(percentFor(0, maxSpareGarbage))
	}, time.Minute, time.Millisecond)
}

// TestTheHeapMayTakeWhatLimitersLeave checks that the memory limit of the collector falls when limiters take memory,
// but not below a part of the whole, and does not follow every page.
func TestTheHeapMayTakeWhatLimitersLeave(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	const all = 64 << 30
	l := &heapLimit{memory: all}
	for _, c := range []struct{ outside, want int64 }{
		{0, all}, {1 << 20, all}, {4 << 30, all - 4<<30}, {5 << 30, all - 4<<30}, {all, all / leastHeapDen},
		{all + 1<<30, all / leastHeapDen}, {1 << 30, all - 1<<30},
	} {
		l.adjust(c.outside)
		require.Equal(t, c.want, debug.SetMemoryLimit(-1), "%d bytes outside", c.outside)
	}
}

// collectedKeys are so many that a server has collected a few times while they were created, so it must not have the
// usual target.
const collectedKeys = 200_000

// TestServersSetTheirCollector checks that a server with keys has its own target, unless configured otherwise.
func TestServersSetTheirCollector(t *testing.T) {
	target := func(p *process) float64 { return p.metric("go_gc_gogc_percent") }
	p := startHolding(t, "", collectedKeys)
	require.Eventually(t, func() bool { // each look makes garbage, for the next collection
		return target(p) != 100 // the runtime's
	}, patience, time.Millisecond)
	require.EqualValues(t, 77, target(startHolding(t, "77", collectedKeys)))
}

// TestNodesWithALogCollectRarelyUnderLoad checks that a loaded server with a log may keep more than the least garbage,
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
