package client

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// seriesQuiet is how long no decision must fail before a success ends a series of failures. If weir decides some
// requests and fails others, they are one series with one log line.
const seriesQuiet = time.Second

// series tracks failures of one kind. It logs the beginning and the end of a series.
type series struct {
	log          *slog.Logger
	began, ended string // the log lines
	active       atomic.Bool

	mu          sync.Mutex
	since, last time.Time
}

func (r *series) failed(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = time.Now()
	if r.active.Load() {
		return
	}
	r.since = r.last
	r.active.Store(true)
	r.log.Warn(r.began, "error", err)
}

func (r *series) succeeded() {
	if !r.active.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if !r.active.Load() || now.Sub(r.last) < seriesQuiet {
		return
	}
	r.active.Store(false)
	r.log.Info(r.ended, "after", now.Sub(r.since).Round(time.Millisecond))
}

// lockedOut reports whether every command of this client gets this error, because the password is wrong or
// missing. With FallBackOnErrors such an error counts as an outage, so that requests do not log in again and
// again.
func (o *Options) lockedOut(err error) bool {
	return o.FallBackOnErrors && (redis.HasErrorPrefix(err, "WRONGPASS") || redis.HasErrorPrefix(err, "NOAUTH"))
}
