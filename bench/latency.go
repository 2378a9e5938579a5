package bench

import (
	"sync"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"github.com/weir-project/weir/bench/servers"
)

const (
	// lowestNs, highestNs and figures are the range and precision of the histograms. A stall of a minute ends a run
	// anyway.
	lowestNs, highestNs = 1, int64(servers.ReplyTimeout)
	figures             = 3
	// recorders are shared by the links of a load. They are enough that links seldom wait for each other, and few
	// enough for thousands of links.
	recorders = 8
)

func newHistogram() *hdr.Histogram { return hdr.New(lowestNs, highestNs, figures) }

// recordTo counts n requests that took d.
func recordTo(h *hdr.Histogram, d time.Duration, n int64) {
	_ = h.RecordValues(min(max(int64(d), lowestNs), highestNs), n) // fails only outside its range
}

// Latency counts until the whole pipeline of a request was answered. It starts when the request was sent, or was due in
// an open loop.
type Latency struct {
	P50Ms  float64 `json:"p50_ms"`
	P90Ms  float64 `json:"p90_ms"`
	P99Ms  float64 `json:"p99_ms"`
	P999Ms float64 `json:"p999_ms"`
	MaxMs  float64 `json:"max_ms"`
}

func latencyOf(h *hdr.Histogram) Latency {
	return Latency{
		P50Ms: msAt(h, 50), P90Ms: msAt(h, 90), P99Ms: msAt(h, 99), P999Ms: msAt(h, 99.9), MaxMs: msAt(h, 100),
	}
}

// msAt returns a percentile in milliseconds, rounded up within the histogram's precision.
func msAt(h *hdr.Histogram, percentile float64) float64 {
	return float64(h.ValueAtQuantile(percentile)) / float64(time.Millisecond)
}

// recorder collects the latency and the answers of some links of a load.
type recorder struct {
	mu      sync.Mutex
	latency *hdr.Histogram
	tally   tally
}

func newRecorders() []*recorder {
	return mapOf(make([]struct{}, recorders), func(struct{}) *recorder {
		return &recorder{latency: newHistogram()}
	})
}

func (r *recorder) record(took time.Duration, answers tally) {
	r.mu.Lock()
	defer r.mu.Unlock()
	recordTo(r.latency, took, answers.answers)
	r.tally.add(answers)
}

// merged combines all recorders.
func merged(all []*recorder) (*hdr.Histogram, tally) {
	h, t := newHistogram(), tally{}
	for _, r := range all {
		h.Merge(r.latency)
		t.add(r.tally)
	}
	return h, t
}
