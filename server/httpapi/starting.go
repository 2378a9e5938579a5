package httpapi

import (
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Starting answers HTTP while a process loads its state: /livez 200, because the process is well, and everything else
// 503 with how far the load has come.
type Starting struct {
	server  *http.Server
	serving sync.WaitGroup
	evicted atomic.Int64
	lent    []lentListener
}

// NewStarting returns a server that says at each request what said returns.
func NewStarting(said func() string, log *slog.Logger) *Starting {
	s := &Starting{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", alive)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "1")
		writePlain(w, http.StatusServiceUnavailable, "[-]node "+said())
	})
	conns := newWebConns(MaxConns, &s.evicted)
	s.server = &http.Server{
		ConnContext:       conns.admit,
		ConnState:         conns.changed,
		Handler:           conns.serve(mux),
		ReadHeaderTimeout: httpHeaderTimeout,
		ReadTimeout:       httpReadTimeout,
		WriteTimeout:      httpWriteTimeout,
		MaxHeaderBytes:    MaxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	s.server.SetKeepAlivesEnabled(false) // the next request may be for the server that follows
	return s
}

// Lend answers requests that arrive at ln until End, which leaves ln open for another server. wrap returns what the
// server accepts from, for TLS.
func (s *Starting) Lend(ln net.Listener, wrap func(net.Listener) net.Listener) {
	lent := lentListener{ln}
	s.lent = append(s.lent, lent)
	s.serving.Go(func() { _ = s.server.Serve(wrap(lent)) })
}

// End stops at once. The listeners can be given to another server then.
func (s *Starting) End() {
	_ = s.server.Close()
	s.serving.Wait()
	for _, ln := range s.lent {
		ln.expire(time.Time{})
	}
}

// lentListener is a listener whose Close ends Accept and leaves the listener open.
type lentListener struct{ net.Listener }

// Close ends all calls of Accept.
func (l lentListener) Close() error {
	l.expire(time.Unix(1, 0))
	return nil
}

func (l lentListener) expire(at time.Time) {
	if d, ok := l.Listener.(interface{ SetDeadline(at time.Time) error }); ok {
		_ = d.SetDeadline(at)
	}
}

func alive(w http.ResponseWriter, _ *http.Request) { writePlain(w, http.StatusOK, "ok") }
