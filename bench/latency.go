package bench

import (
	"sync"
	"time"

	"github.com/weir-project/weir/bench/servers"
)

const (
	// longestReply is the end of the histograms. A stall of a minute ends a run anyway.
	longestReply = servers.ReplyTimeout
	// recorders are shared by the links of a load. They are enough that links seldom wait for each other, and few
	// enough for thousands of links.
	recorders = 8
)

// Latency counts until the whole pipeline of a request was answered. It starts when the request was sent, or was due in
// an open loop.
type Latency struct {
	P50Ms  float64 `json:"p50_ms"`
	P90Ms  float64 `json:"p90_ms"`
	P99Ms  float64 `json:"p99_ms"`
	P999Ms float64 `json:"p999_ms"`
	MaxMs  float64 `json:"max_ms"`
}

func latencyOf(h *histogram) Latency {
	return Latency{
		P50Ms: msAt(h, 50), P90Ms: msAt(h, 90), P99Ms: msAt(h, 99), P999Ms: msAt(h, 99.9), MaxMs: msAt(h, 100),
	}
}

// msAt returns a percentile in milliseconds, rounded up within the histogram's precision.
func msAt(h *histogram, percentile float64) float64 {
	return float64(h.quantile(percentile)) / float64(time.Millisecond)
}

// recorder collects the latency and the answers of some links of a load.
type recorder struct {
	mu      sync.Mutex
	latency *histogram
	tally   tally
}

func newRecorders() []*recorder {
	return mapOf(make([]struct{}, recorders), func(struct{}) *recorder {
		return &recorder{latency: new(histogram)}
	})
}

func (r *recorder) record(took time.Duration, answers tally) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.latency.record(took, answers.answers)
	r.tally.add(answers)
}

// merged combines all recorders.
func merged(all []*recorder) (*histogram, tally) {
	h, t := new(histogram), tally{}
	for _, r := range all {
		h.add(r.latency)
		t.add(r.tally)
	}
	return h, t
}
