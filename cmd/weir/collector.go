package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/weir-project/weir/internal/offheap"
)

const (
	// garbagePercent is the allowed garbage relative to the live heap. Limiters are outside the heap.
	garbagePercent = 25
	// spareGarbage is allowed in any case, because a small heap would otherwise be collected continuously.
	spareGarbage = 2 << 20
	// maxSpareGarbage is the most spare garbage of a busy server. The runtime may allow twice as much in a heap of less
	// than 4 MB. Each entry of the log and each call of Envoy makes garbage, and so does a load of stored state. With
	// spareGarbage, a loaded node collected up to eighty times a second, and used a quarter of its processor time for
	// collections. Decisions of a server without a log make hardly any garbage.
	maxSpareGarbage = 16 << 20
	// busyCollector is the time between two collections below which the spare garbage doubles, up to its maximum.
	// calmCollector is the time above which it halves again, down to spareGarbage.
	busyCollector, calmCollector = 100 * time.Millisecond, time.Second
	// leastHeapDen bounds the heap's part of the memory from below, where limiters take nearly all of it: with less
	// than 1/leastHeapDen, the collector would run without end.
	leastHeapDen = 16
	// followEvery is short beside the time in which new keys fill a machine.
	followEvery = time.Second
)

// percentFor returns the collector's target for a heap with this many live bytes and this much spare garbage.
func percentFor(live, spare uint64) int {
	return int(max(garbagePercent, min(100*spare/spareGarbage, 100*spare/max(live, 1))))
}

// nextSpare returns the spare garbage after a collection that began so long after the previous one.
func nextSpare(spare uint64, after time.Duration) uint64 {
	switch {
	case after < busyCollector:
		return min(2*spare, maxSpareGarbage)
	case after > calmCollector:
		return max(spare/2, spareGarbage)
	}
	return spare
}

// heapTarget is the collector's target, adjusted to the heap after each collection. Only the goroutine of cleanups uses
// it once it is watched.
type heapTarget struct {
	percent int
	spare   uint64
	lastAt  time.Time // time of the last collection
}

func newHeapTarget() *heapTarget {
	return &heapTarget{percent: 100, spare: spareGarbage, lastAt: time.Now()}
}

// watchCollector adjusts the collector's target and memory limit for the life of a process that may use this much
// memory, 0 for no limit. What the user has set stays as it is.
func watchCollector(memory int64) {
	if os.Getenv("GOGC") == "" {
		newHeapTarget().watch()
	}
	if os.Getenv("GOMEMLIMIT") == "" && memory > 0 {
		l := &heapLimit{memory: memory / 100 * collectorPercent}
		l.adjust(0)
		go l.follow()
	}
}

// cycle is an object that the next collection frees. Its pointer field matters: the runtime may put a small object
// without pointers into the memory block of a live object.
type cycle struct{ _ *heapTarget }

func (t *heapTarget) watch() { runtime.AddCleanup(&cycle{}, (*heapTarget).collected, t) }

func (t *heapTarget) collected() {
	t.note(time.Now())
	t.adjust()
	t.watch()
}

// note adjusts the spare garbage to the time of a collection.
func (t *heapTarget) note(now time.Time) {
	t.spare = nextSpare(t.spare, now.Sub(t.lastAt))
	t.lastAt = now
}

// adjust adjusts the target to the heap that the last collection has left.
func (t *heapTarget) adjust() {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	if p := percentFor(live[0].Value.Uint64(), t.spare); p != t.percent {
		t.percent = p
		debug.SetGCPercent(p)
	}
}

// heapLimit is the collector's memory limit: what limiters leave of the memory.
type heapLimit struct {
	memory int64 // for the heap and the limiters outside it
	limit  int64 // the limit in force
}

// follow adjusts the limit every followEvery, for the life of the process. Limiters grow without a collection.
func (l *heapLimit) follow() {
	for range time.Tick(followEvery) {
		l.adjust(offheap.InUse())
	}
}

// adjust adjusts the limit to the bytes outside the heap. A change stops all goroutines for a moment, so it ignores
// small ones.
func (l *heapLimit) adjust(outside int64) {
	limit := max(l.memory-outside, l.memory/leastHeapDen)
	if max(limit-l.limit, l.limit-limit) > l.memory/(4*leastHeapDen) {
		l.limit = limit
		debug.SetMemoryLimit(limit)
	}
}
