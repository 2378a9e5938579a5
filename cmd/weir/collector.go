package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-project/weir/persistence"
)

const (
	// garbagePercent is the allowed garbage relative to the live heap. A decision makes no garbage, and limiters have
	// no pointers to follow, so frequent collection is cheap.
	garbagePercent = 4
	// spareGarbage is allowed in any case, because a small heap would otherwise be collected continuously.
	spareGarbage = 2 << 20
	// maxSpareGarbage is the most spare garbage of a server with a log or with Envoy's rate limit service. The runtime
	// may allow twice as much in a heap of less than 4 MB. Each entry of the log and each call of Envoy makes garbage.
	// With spareGarbage, a loaded node collected up to eighty times a second, and used a quarter of its processor time
	// for collections. Other servers make hardly any garbage.
	maxSpareGarbage = 16 << 20
	// busyCollector is the time between two collections below which the spare garbage doubles, up to its maximum.
	// calmCollector is the time above which it halves again, down to spareGarbage.
	busyCollector, calmCollector = 100 * time.Millisecond, time.Second
	// loadPercent is the least target while stored state is loaded. The heap then grows by what stays, so each
	// collection finds little. With garbagePercent, a third of the processor time of a load went into collections.
	loadPercent = 25
)

// percentFor returns the collector's target for a heap with this many live bytes and this much spare garbage.
func percentFor(live, spare uint64) int {
	return int(max(garbagePercent, min(100*spare/spareGarbage, 100*spare/max(live, 1))))
}

// nextSpare returns the spare garbage after a collection that began so long after the previous one.
func nextSpare(spare, most uint64, after time.Duration) uint64 {
	switch {
	case after < busyCollector:
		return min(2*spare, most)
	case after > calmCollector:
		return max(spare/2, spareGarbage)
	}
	return min(spare, most)
}

// heapTarget is the collector's target, adjusted to the heap after each collection.
type heapTarget struct {
	most atomic.Uint64 // bounds spare

	mu      sync.Mutex
	percent int
	spare   uint64
	lastAt  time.Time // time of the last collection
	loads   int       // how many loads of stored state run
}

func newHeapTarget() *heapTarget {
	t := &heapTarget{percent: 100, spare: spareGarbage, lastAt: time.Now()}
	t.most.Store(spareGarbage)
	return t
}

// watchCollector starts the adjustment for the life of the process, and tells the collector of loads. It does neither
// if the user set a target.
func watchCollector(loads *persistence.Progress) *heapTarget {
	t := newHeapTarget()
	if os.Getenv("GOGC") == "" {
		t.watch()
		loads.OnLoad = t.load
	}
	return t
}

// load raises the target from the next collection on, until the function that it returns is called.
func (t *heapTarget) load() (ended func()) {
	t.count(1)
	return func() {
		t.count(-1)
		t.adjust()
	}
}

func (t *heapTarget) count(loads int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.loads += loads
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
	t.mu.Lock()
	defer t.mu.Unlock()
	t.spare = nextSpare(t.spare, t.most.Load(), now.Sub(t.lastAt))
	t.lastAt = now
}

// adjust adjusts the target to the heap that the last collection has left.
func (t *heapTarget) adjust() {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	t.mu.Lock()
	defer t.mu.Unlock()
	p := percentFor(live[0].Value.Uint64(), t.spare)
	if t.loads > 0 {
		p = max(p, loadPercent)
	}
	if p != t.percent {
		t.percent = p
		debug.SetGCPercent(p)
	}
}
