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
	kept    []keptListener
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
	s.server = newWebConns(MaxConns, &s.evicted).server(mux, MaxHeaderBytes, log)
	s.server.SetKeepAlivesEnabled(false) // the next request may be for the server that follows
	return s
}

// Serve answers requests that arrive at ln until End, which leaves ln open for another server. secure adds TLS to a
// listener, or returns it. A listener whose Accept cannot be interrupted is not served.
func (s *Starting) Serve(ln net.Listener, secure func(net.Listener) net.Listener) {
	deadline, ok := ln.(deadliner)
	if !ok {
		return
	}
	kept := keptListener{ln, deadline}
	s.kept = append(s.kept, kept)
	s.serving.Go(func() { _ = s.server.Serve(secure(kept)) })
}

// End stops at once. The listeners can be given to another server then.
func (s *Starting) End() {
	_ = s.server.Close()
	s.serving.Wait()
	for _, ln := range s.kept {
		_ = ln.SetDeadline(time.Time{})
	}
}

// deadliner is a listener whose Accept ends at a time, as those of TCP and of Unix sockets.
type deadliner interface {
	SetDeadline(at time.Time) error
}

// keptListener is a listener whose Close ends Accept and leaves the listener open.
type keptListener struct {
	net.Listener
	deadliner
}

// Close ends all calls of Accept.
func (l keptListener) Close() error { return l.SetDeadline(time.Unix(1, 0)) }

func alive(w http.ResponseWriter, _ *http.Request) { writePlain(w, http.StatusOK, "ok") }
