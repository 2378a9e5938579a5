package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// garbagePercent is the allowed garbage relative to the live heap. A decision makes no garbage, and limiters have
	// no pointers to follow, so frequent collection is cheap.
	garbagePercent = 4
	// spareGarbage is allowed in any case, because a small heap would be collected continuously.
	spareGarbage = 2 << 20
)

// percentFor returns the collector's target for a heap with this many live bytes.
func percentFor(live uint64) int {
	return int(max(garbagePercent, min(100, 100*spareGarbage/max(live, 1))))
}

// heapTarget is the collector's target, adjusted to the heap after each collection.
type heapTarget struct{ percent int }

// watchCollector starts the adjustment for the life of the process, unless the user set a target.
func watchCollector() {
	if os.Getenv("GOGC") == "" {
		(&heapTarget{percent: 100}).watch()
	}
}

// cycle is an object that the next collection frees. Its pointer field matters: the runtime may put a small object
// without pointers into the memory block of a live object.
type cycle struct{ _ *heapTarget }

func (t *heapTarget) watch() { runtime.AddCleanup(&cycle{}, (*heapTarget).collected, t) }

func (t *heapTarget) collected() {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	if p := percentFor(live[0].Value.Uint64()); p != t.percent {
		t.percent = p
		debug.SetGCPercent(p)
	}
	t.watch()
}
