package bench

import (
	"sync"
	"time"
)

// WindowKind says what happens during a window.
type WindowKind string

const (
	Quiet     WindowKind = "quiet"           // only decisions
	OneSaves  WindowKind = "leader's"        // the leader writes a snapshot
	AllSave   WindowKind = "all nodes'"      // every node does
	Aftermath WindowKind = "right after one" // the effect of a snapshot on the disk and the garbage collector
)

// snapshot reports whether a snapshot is being written.
func (k WindowKind) snapshot() bool { return k == OneSaves || k == AllSave }

// window is a period of a run, and the latency of the decisions in it.
type window struct {
	kind         WindowKind
	began, ended time.Time
	latency      *histogram // nanoseconds
	tally        tally
}

func newWindow(kind WindowKind, began time.Time) *window {
	return &window{kind: kind, began: began, latency: new(histogram)}
}

// timeline is the consecutive windows of a run. It is safe for concurrent use.
type timeline struct {
	mu      sync.Mutex
	windows []*window // the last one is open
}

// open ends a window and begins another, unless a window of its kind is open.
func (t *timeline) open(kind WindowKind, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.windows); n > 0 && t.windows[n-1].kind == kind {
		return
	}
	t.end(at)
	t.windows = append(t.windows, newWindow(kind, at))
}

// close ends the last window.
func (t *timeline) close(at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end(at)
}

func (t *timeline) end(at time.Time) {
	if n := len(t.windows); n > 0 {
		t.windows[n-1].ended = at
	}
}

// record counts answers by the time at which they were due and the time of their arrival.
func (t *timeline) record(due, came time.Time, answers tally) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.windowOf(due)
	w.latency.record(came.Sub(due), answers.answers)
	w.tally.add(answers)
}

// windowOf returns the latest snapshot that overlapped with a decision that was due at due and is answered now. The
// decision counts to that snapshot. Without a snapshot it returns the window in which the decision was due.
func (t *timeline) windowOf(due time.Time) *window {
	i := len(t.windows) - 1
	for ; i > 0; i-- {
		if w := t.windows[i]; w.kind.snapshot() || !due.Before(w.began) {
			break
		}
	}
	return t.windows[i]
}
