package client

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// breakerFailures is how many failures in a row open the circuit breaker. A single failure may be a lost packet or
	// a pause. Until then the fallback decides each failed request individually.
	breakerFailures = 3
	// minProbePause is the first pause between probes, and maxProbePause the longest; the pause doubles between them.
	// The client returns soon after a restart, and puts no load on a server that struggles.
	minProbePause = 20 * time.Millisecond
	maxProbePause = time.Second
)

// breaker is a circuit breaker. While weir is not reached, one goroutine probes it, and the client sends nothing
// else.
type breaker struct {
	probe  func(context.Context) error
	log    *slog.Logger
	counts *counters

	failures atomic.Int32 // since the last success
	down     atomic.Bool

	mu     sync.Mutex // guards closed; no probing begins after it is set
	closed bool
	ctx    context.Context
	cancel context.CancelFunc
	prober sync.WaitGroup
}

func newBreaker(probe func(context.Context) error, log *slog.Logger, counts *counters) *breaker {
	l := &breaker{probe: probe, log: log, counts: counts}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

func (l *breaker) succeeded() {
	if l.failures.Load() != 0 {
		l.failures.Store(0)
	}
}

func (l *breaker) failed(err error) {
	if l.failures.Add(1) < breakerFailures || l.down.Load() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || !l.down.CompareAndSwap(false, true) {
		return
	}
	l.counts.switches.Add(1)
	l.log.Warn("weir is not reached: the fallback decides until it is", "error", err)
	l.prober.Go(l.probeUntilUp)
}

func (l *breaker) probeUntilUp() {
	since := time.Now()
	timer := time.NewTimer(minProbePause)
	defer timer.Stop()
	for pause := minProbePause; ; {
		select {
		case <-l.ctx.Done():
			return
		case <-timer.C:
		}
		l.counts.probes.Add(1)
		if l.probe(l.ctx) == nil {
			l.failures.Store(0)
			l.down.Store(false)
			l.log.Info("weir answers again", "after", time.Since(since).Round(time.Millisecond))
			return
		}
		pause = min(2*pause, maxProbePause)
		timer.Reset(pause)
	}
}

func (l *breaker) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.cancel()
	l.prober.Wait()
}
