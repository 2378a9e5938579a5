package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// garbagePercent is how much garbage may be there beside what is in use. A decision
	// makes none and limiters have no pointers to follow, so collecting often is cheap.
	garbagePercent = 4
	// spareGarbage may be there in any case: a small heap would be collected all the time.
	spareGarbage = 2 << 20
)

// percentFor is the collector's target for a heap with so many bytes in use.
func percentFor(live uint64) int {
	return int(max(garbagePercent, min(100, 100*spareGarbage/max(live, 1))))
}

// heapTarget is the collector's target, adjusted to the heap after each collection.
type heapTarget struct{ percent int }

// watchCollector starts that, for as long as the process lives, unless the user set a target.
func watchCollector() {
	if os.Getenv("GOGC") == "" {
		(&heapTarget{percent: 100}).watch()
	}
}

// cycle is something that the next collection finds. What has no pointer might share its
// memory with what is still in use.
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
