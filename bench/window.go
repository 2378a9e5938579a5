package bench

import (
	"sync"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// WindowKind says what happens while a window is open.
type WindowKind string

const (
	Quiet     WindowKind = "quiet"           // only decisions
	OneSaves  WindowKind = "leader's"        // the leader writes a snapshot
	AllSave   WindowKind = "all nodes'"      // every node does
	Aftermath WindowKind = "right after one" // what a snapshot leaves to the disk and the collector
)

// snapshot says whether a snapshot is being written.
func (k WindowKind) snapshot() bool { return k == OneSaves || k == AllSave }

// window is a stretch of a run and the latency of the decisions in it.
type window struct {
	kind         WindowKind
	began, ended time.Time
	latency      *hdr.Histogram // nanoseconds
	tally        tally
}

func newWindow(kind WindowKind, began time.Time) *window {
	return &window{kind: kind, began: began, latency: newHistogram()}
}

// timeline is the windows of a run, one behind the other. Safe for concurrent use.
type timeline struct {
	mu      sync.Mutex
	windows []*window // the last one is open
}

// open ends a window and begins another, unless one of its kind is open.
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

// record counts answers that were due at one time and came at another.
func (t *timeline) record(due, came time.Time, answers tally) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.windowOf(due)
	recordTo(w.latency, came.Sub(due), answers.answers)
	w.tally.add(answers)
}

// windowOf is the latest snapshot that a decision, due then and answered now, was
// under way in: a snapshot is to blame for whatever it touched. Without one it is
// the window in which the decision was due.
func (t *timeline) windowOf(due time.Time) *window {
	i := len(t.windows) - 1
	for ; i > 0; i-- {
		if w := t.windows[i]; w.kind.snapshot() || !due.Before(w.began) {
			break
		}
	}
	return t.windows[i]
}
