package commands

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/server/httpapi"
	"github.com/weir-project/weir/server/servertest"
)

// ask sends one request directly to the handler.
func ask(h *httpapi.Server, method, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, path, nil))
	return w
}

func TestHTTPProbes(t *testing.T) {
	srv, err := NewShared(Config{}, servertest.NewTableLimiter())
	require.NoError(t, err)
	h := newHTTP(srv)
	for _, path := range []string{"/livez", "/readyz"} {
		w := ask(h, http.MethodGet, path)
		require.Equal(t, http.StatusOK, w.Code)
		require.Equal(t, "ok\n", w.Body.String())
	}
	require.Equal(t, http.StatusMethodNotAllowed, ask(h, http.MethodPost, "/livez").Code)
	require.Equal(t, http.StatusNotFound, ask(h, http.MethodGet, "/debug/pprof/").Code)

	stopServing(srv)
	require.Equal(t, http.StatusServiceUnavailable, ask(h, http.MethodGet, "/readyz").Code)
	require.Equal(t, http.StatusOK, ask(h, http.MethodGet, "/livez").Code, "draining is not dead")
}

func TestHTTPMetrics(t *testing.T) {
	lim := servertest.NewTableLimiter()
	srv, err := NewShared(Config{Version: "1.2.3"}, lim)
	require.NoError(t, err)
	limit := engine.Limit{Algorithm: engine.TokenBucket, Rate: engine.Rate{Units: 1, PerNs: 1e9}, Max: 2}
	out := make([]engine.Decision, 1)
	for range 3 {
		require.NoError(t, lim.Decide([]engine.Op{{Key: []byte("k"), Cost: 1, Limit: limit}}, out))
	}
	srv.Wire.Panics.Add(7)
	page := ask(newHTTP(srv), http.MethodGet, "/metrics").Body.String()
	for _, want := range []string{
		`weir_build_info{goversion="go`, `version="1.2.3"} 1`,
		`weir_decisions_total{algorithm="tokenbucket",result="admitted"} 2`,
		`weir_decisions_total{algorithm="tokenbucket",result="denied"} 1`,
		`weir_keys{algorithm="tokenbucket"} 1`,
		"weir_handler_panics_total 7", "weir_max_clients 10000", "weir_connected_clients 0",
		"weir_last_save_timestamp_seconds ", "process_cpu_seconds_total ", "go_goroutines ",
	} {
		require.Contains(t, page, want)
	}
	types := 0
	for line := range strings.Lines(page) {
		var name, kind string
		if _, err := fmt.Sscanf(line, "# TYPE weir_%s %s", &name, &kind); err == nil {
			require.Equal(t, kind == "counter", strings.HasSuffix(name, "_total"),
				"Prometheus ends counters, and only them, in _total: %s", name)
			types++
		}
	}
	require.Greater(t, types, 15)
}

func TestHTTPLimits(t *testing.T) {
	before := goleak.IgnoreCurrent()
	srv, err := NewShared(Config{}, servertest.NewTableLimiter())
	require.NoError(t, err)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	h, ended := newHTTP(srv), make(chan error, 1)
	go func() { ended <- h.Serve(ln) }()
	c, err := net.Dial("tcp", ln.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.SetDeadline(time.Now().Add(time.Minute)))
	// net/http reads 4 KiB beyond its bound before it answers.
	long := "GET /livez HTTP/1.1\r\nHost: x\r\nX-Long: " + strings.Repeat("x", httpapi.MaxHeaderBytes+8<<10)
	_, err = io.Copy(c, bytes.NewReader([]byte(long)))
	require.NoError(t, err)
	answer, _ := io.ReadAll(c)
	require.Contains(t, string(answer), "431 Request Header Fields Too Large")
	require.NoError(t, h.Close())
	require.NoError(t, <-ended, "a close that was asked for is no error")
	require.NoError(t, c.Close())
	// net/http keeps a refused connection open half a second longer.
	require.Eventually(t, func() bool { return goleak.Find(before) == nil }, time.Minute, 10*time.Millisecond)
}
