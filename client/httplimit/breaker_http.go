package httplimit

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"

	"github.com/weir-project/weir/client"
	"github.com/weir-project/weir/httpfields"
)

// guard serves an admitted request, unless the breaker of its route is open.
func (l *limiter) guard(w http.ResponseWriter, r *http.Request, route *Route, next http.Handler) {
	period, wait, ok := route.Breaker.pass()
	if !ok {
		w.Header().Set(httpfields.RetryAfter, strconv.FormatInt(max(httpfields.Seconds(wait), 1), 10))
		l.answer(w, r, Denial{
			Status: http.StatusServiceUnavailable, Route: route.Name, Limit: route.Name, BreakerOpen: true,
			Detail: "The service is not available at present.", Decision: client.Decision{RetryAfter: wait},
		})
		return
	}
	watched := &watchedWriter{ResponseWriter: w, breaker: route.Breaker, period: period, ctx: r.Context()}
	finished := false
	defer func() { // runs after a panic as well
		if finished {
			watched.answered(http.StatusOK)
		} else {
			watched.end(failed)
		}
	}()
	next.ServeHTTP(watched, r)
	finished = true
}

// watchedWriter reports the status of an answer to a breaker as soon as it is written.
type watchedWriter struct {
	http.ResponseWriter
	breaker *Breaker
	period  uint64
	ctx     context.Context
	ended   bool
}

func (w *watchedWriter) answered(status int) {
	switch {
	case w.ended:
	case status < http.StatusOK && status != http.StatusSwitchingProtocols: // informational: the final status follows
	case w.breaker.o.Failed(status):
		w.end(failed)
	default:
		w.end(succeeded)
	}
}

// end reports the outcome of the request to the breaker, once. A failure does not count if the client has
// disconnected, because reverse proxies then answer with 502.
func (w *watchedWriter) end(what outcome) {
	if w.ended {
		return
	}
	w.ended = true
	if what == failed && errors.Is(w.ctx.Err(), context.Canceled) {
		what = unknown
	}
	w.breaker.settle(w.period, what)
}

// WriteHeader implements http.ResponseWriter.
func (w *watchedWriter) WriteHeader(status int) {
	w.answered(status)
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *watchedWriter) Write(b []byte) (int, error) {
	w.answered(http.StatusOK)
	return w.ResponseWriter.Write(b)
}

// ReadFrom implements io.ReaderFrom, so that files are sent in the same way as without a breaker.
func (w *watchedWriter) ReadFrom(r io.Reader) (int64, error) {
	w.answered(http.StatusOK)
	return io.Copy(w.ResponseWriter, r)
}

// Flush implements http.Flusher.
func (w *watchedWriter) Flush() {
	w.answered(http.StatusOK)
	_ = http.NewResponseController(w.ResponseWriter).Flush() // if it is not supported, the answer is sent at its end
}

// Hijack implements http.Hijacker.
func (w *watchedWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buf, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil {
		w.end(succeeded)
	}
	return conn, buf, err
}

// Unwrap supports http.ResponseController.
func (w *watchedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
