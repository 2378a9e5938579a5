package httpapi

import (
	"sync"
	"time"

	"github.com/weir-project/weir/server/service"
)

// The page shows ten minutes of history, also directly after it was opened. The server therefore samples its counters
// all the time. This costs 8 KB, and one sample every three seconds.
const (
	historyEvery   = 3 * time.Second
	historySamples = 200
)

// Sample is one entry of /history.json: counters since the start, and values at that time.
type Sample struct {
	NowMs   int64 `json:"now_ms"`
	Allowed int64 `json:"allowed"`
	Limited int64 `json:"limited"`
	Memory  int64 `json:"memory"`
	Keys    int64 `json:"keys"`
}

// history is a ring of the last samples.
type history struct {
	*service.Service

	mu      sync.Mutex
	samples []Sample // at most historySamples; the oldest is at next once it is full
	next    int
	closed  bool
	ended   chan struct{}
	running sync.WaitGroup
}

func newHistory(s *service.Service) *history { return &history{Service: s, ended: make(chan struct{})} }

// start takes samples until close. After close it does nothing.
func (h *history) start() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.running.Go(h.run)
	}
}

// close stops sampling. When it returns, no further sample is taken.
func (h *history) close() {
	h.mu.Lock()
	if !h.closed {
		h.closed = true
		close(h.ended)
	}
	h.mu.Unlock()
	h.running.Wait()
}

func (h *history) run() {
	tick := time.NewTicker(historyEvery)
	defer tick.Stop()
	for {
		h.add(h.sample())
		select {
		case <-h.ended:
			return
		case <-tick.C:
		}
	}
}

func (h *history) sample() Sample {
	stats := h.Limiter.Stats()
	s := Sample{NowMs: time.Now().UnixMilli(), Memory: stats.MemoryBytes, Keys: stats.Keys}
	s.Allowed, s.Limited = h.Stats.Requests()
	return s
}

func (h *history) add(s Sample) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.samples) < historySamples {
		h.samples = append(h.samples, s)
		return
	}
	h.samples[h.next] = s
	h.next = (h.next + 1) % historySamples
}

// all returns the samples, oldest first.
func (h *history) all() []Sample {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append(append([]Sample{}, h.samples[h.next:]...), h.samples[:h.next]...)
}
