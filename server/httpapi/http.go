package httpapi

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/weir-project/weir/server/metrics"
	"github.com/weir-project/weir/server/service"
)

// Limits of the HTTP server, which serves probes, scrapers and a few people.
const (
	// httpHeaderTimeout and httpReadTimeout bound the time in which a request must arrive.
	httpHeaderTimeout = 5 * time.Second
	httpReadTimeout   = 10 * time.Second
	// httpWriteTimeout bounds a reply. The metrics are a few kilobytes.
	httpWriteTimeout = 10 * time.Second
	// httpIdleTimeout exceeds the usual scrape interval of 15 s to 60 s, so that a scraper keeps its connection.
	httpIdleTimeout = 2 * time.Minute
	// MaxHeaderBytes far exceeds the headers of a scraper.
	MaxHeaderBytes = 8 << 10
	// MaxConns bounds the connections. Probes and scrapers are few, and opening a connection needs no password. Without
	// a bound, connections could use up the file descriptors that clients and the store need.
	MaxConns = 128
)

// Server answers HTTP requests about a service:
//
//	/livez    200 while the process answers
//	/readyz   200 while the server accepts clients, 503 once it drains; in a cluster
//	          also 503 without a leader, and while the state is too old
//	/metrics  Prometheus
//	/         the status page, which also shows keys: see forPeople
//	/check    decisions for proxies, unless New received CheckOff
//	/, /pipeline, /multi-exec
//	          with POST: commands in the REST form of Upstash, if New received rest
type Server struct {
	server *http.Server
	conns  *webConns
	gate
	check    *httpCheck // nil: off
	commands *pageCommander
	past     *history
	probes   *probes
	mux      *http.ServeMux
	page     *page
}

// gate lets requests use the limiter until it is closed.
type gate struct {
	running sync.RWMutex // read-locked while a request uses the limiter
	closed  bool
}

// close waits for the requests that use the limiter.
func (g *gate) close() {
	g.running.Lock()
	defer g.running.Unlock()
	g.closed = true
}

// New returns the HTTP server of s. Probes and metrics require no password, so the caller must control access to the
// port. check is CheckOff, CheckProtected or CheckOpen. rest switches the REST form on.
func New(s *service.Service, by Hand, check string, rest bool) (*Server, error) {
	if check != CheckOff && check != CheckProtected && check != CheckOpen {
		return nil, fmt.Errorf("httpapi: HTTP check must be %s, %s or %s, not %q",
			CheckOff, CheckProtected, CheckOpen, check)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", alive)
	mux.Handle("GET /metrics", &metricsPage{make: promhttp.HandlerFor(metrics.NewRegistry(s), promhttp.HandlerOpts{
		ErrorLog:      slog.NewLogLogger(s.Log.Handler(), slog.LevelError),
		ErrorHandling: promhttp.ContinueOnError,
	})})
	h := &Server{past: newHistory(s), probes: &probes{Service: s}, mux: mux}
	h.check, h.commands = newHTTPCheck(s, &h.gate, check), &pageCommander{s, &h.gate, by}
	h.page = &page{s, h.commands, h.past}
	mux.HandleFunc("GET /readyz", h.probes.answer)
	h.page.handle(mux)
	handleREST(mux, h.commands, rest)
	most, headerBytes := MaxConns, MaxHeaderBytes
	if rest {
		most = CheckMaxConns
	}
	answer := http.Handler(http.HandlerFunc(checkIsOff))
	if h.check != nil {
		answer, most, headerBytes = h.check, CheckMaxConns, MaxCheckHeaderBytes
	}
	mux.Handle(checkPath, answer)
	mux.Handle(checkPath+"/", answer)
	h.conns = newWebConns(most, &s.Wire.EvictedHTTP)
	h.server = h.conns.server(telling(mux), headerBytes, s.Log)
	return h, nil
}

// Ready reports whether /readyz answers 200.
func (h *Server) Ready() bool { return h.probes.ready() }

// ServeHTTP answers one request.
func (h *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.server.Handler.ServeHTTP(w, r) }

// Serve answers requests from ln until Close, and then returns nil.
func (h *Server) Serve(ln net.Listener) error {
	h.past.start()
	err := h.server.Serve(webListener{ln})
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Close stops at once. When it returns, no check and no command reaches the limiter.
func (h *Server) Close() error {
	err := h.server.Close()
	h.past.close()
	h.gate.close()
	return err
}

func checkIsOff(w http.ResponseWriter, _ *http.Request) {
	writePlain(w, http.StatusNotFound, "the HTTP check is off: start weir with --http-check protected, or with "+
		"--http-check open for every client that reaches this port (docs/http.md)")
}

func writePlain(w http.ResponseWriter, status int, line string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, line+"\n")
}
