package client

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// refusalsQuiet is how long weir must refuse no decision before a success ends a series of refusals. If weir
// refuses some requests and decides others, they are one series with one log line.
const refusalsQuiet = time.Second

// refusals tracks a series of decisions that weir refuses with an error, so that WhenDown makes them
// (Options.FallBackOnErrors). It logs the beginning and the end of a series.
type refusals struct {
	log    *slog.Logger
	active atomic.Bool

	mu          sync.Mutex
	since, last time.Time
}

func (r *refusals) failed(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = time.Now()
	if r.active.Load() {
		return
	}
	r.since = r.last
	r.active.Store(true)
	r.log.Warn("weir answers with an error: the fallback decides the requests that weir refuses", "error", err)
}

func (r *refusals) succeeded() {
	if !r.active.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if !r.active.Load() || now.Sub(r.last) < refusalsQuiet {
		return
	}
	r.active.Store(false)
	r.log.Info("weir decides again", "after", now.Sub(r.since).Round(time.Millisecond))
}

// lockedOut reports whether every command of this client gets this error, because the password is wrong or
// missing. With FallBackOnErrors such an error counts as an outage, so that requests do not log in again and
// again.
func (o *Options) lockedOut(err error) bool {
	return o.FallBackOnErrors && (redis.HasErrorPrefix(err, "WRONGPASS") || redis.HasErrorPrefix(err, "NOAUTH"))
}
