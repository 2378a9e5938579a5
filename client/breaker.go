package client

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// breakerFailures is how many failures in a row make the client doubt that weir is there. A single failure may be
	// a lost packet or a pause.
	breakerFailures = 3
	// lossTime is how long weir must answer nothing before its silence is an outage. A weir that answers later than
	// Options.Timeout is busy.
	lossTime = 3 * time.Second
	// minProbePause is the first pause between probes, and maxProbePause the longest; the pause doubles between them.
	// The client returns soon after a restart, and puts no load on a server that struggles.
	minProbePause = 20 * time.Millisecond
	maxProbePause = time.Second
)

// errNoProof is the error of a probe that neither reached weir nor proves that weir is not there.
var errNoProof = errors.New("no connection for the probe")

// breaker is a circuit breaker. After failures in a row one goroutine probes weir. The breaker opens (down) when an
// error or a probe proves that weir is not there, never because requests time out. While it is open, the client sends
// nothing but probes.
type breaker struct {
	// probe returns nil if weir answers, however late, and errNoProof if that is not known.
	probe  func(context.Context) error
	log    *slog.Logger
	counts *counters

	failures atomic.Int32 // since the last success
	down     atomic.Bool

	mu      sync.Mutex // guards closed and probing; no probing begins after closed is set
	closed  bool
	probing bool
	ctx     context.Context
	cancel  context.CancelFunc
	prober  sync.WaitGroup
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

// failed reports a failed command. proven means that its error proves that weir is not there.
func (l *breaker) failed(err error, proven bool) {
	if l.failures.Add(1) < breakerFailures || l.down.Load() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	if proven {
		l.open(err)
	}
	if !l.probing {
		l.probing = true
		l.prober.Go(l.probeUntilUp)
	}
}

// open opens the breaker.
func (l *breaker) open(err error) {
	if l.down.CompareAndSwap(false, true) {
		l.counts.switches.Add(1)
		l.log.Warn("weir is not reached: the fallback decides until it is", "error", err)
	}
}

// probeUntilUp probes until weir answers a probe, or a command if the breaker is not open.
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
		if err := l.probe(l.ctx); l.concludes(err, since) {
			return
		}
		pause = min(2*pause, maxProbePause)
		timer.Reset(pause)
	}
}

// concludes reports whether a probe ends the probing.
func (l *breaker) concludes(err error, since time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.ctx.Err() != nil:
		return true
	case err == nil || !l.down.Load() && l.failures.Load() == 0:
		l.probing = false
		l.failures.Store(0)
		if l.down.CompareAndSwap(true, false) {
			l.log.Info("weir answers again", "after", time.Since(since).Round(time.Millisecond))
		}
		return true
	case !errors.Is(err, errNoProof):
		l.open(err)
	}
	return false
}

func (l *breaker) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.cancel()
	l.prober.Wait()
}
