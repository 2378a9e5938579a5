package main

import (
	"bytes"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/cli/healthcheck"
)

func TestHealthcheck(t *testing.T) {
	for status, want := range map[int]error{
		http.StatusOK: nil, http.StatusServiceUnavailable: healthcheck.ErrNotReady,
		http.StatusNotFound: healthcheck.ErrNotReady, http.StatusFound: healthcheck.ErrNotReady,
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(r.Method + " " + r.URL.Path + "\n" + strings.Repeat("x", healthcheck.MaxBytes)))
		}))
		var out bytes.Buffer
		require.ErrorIs(t, (&healthcheck.Command{HTTP: s.Listener.Addr().String()}).Ask(&out), want, status)
		require.Equal(t, healthcheck.MaxBytes, out.Len())
		require.Contains(t, out.String(), "GET /readyz\n")
		s.Close()
	}
	require.ErrorIs(t, new(healthcheck.Command).Ask(nil), healthcheck.ErrNoHTTP)
}

// TestHealthcheckCommandLine checks the exit code, which platforms use, and that the address has the same name as in
// serve.
func TestHealthcheckCommandLine(t *testing.T) {
	p := start(t, "--data-dir=")
	_, port, err := net.SplitHostPort(strings.TrimPrefix(p.web, "http://"))
	require.NoError(t, err)
	for _, addr := range []string{"127.0.0.1:" + port, ":" + port, "0.0.0.0:" + port} {
		check := exec.Command(binary, "healthcheck")
		check.Env = append(os.Environ(), "WEIR_HTTP="+addr, "HTTP_PROXY=http://127.0.0.1:1")
		out, err := check.CombinedOutput()
		require.NoError(t, err, "%s: %s", addr, out)
		require.Equal(t, "ok\n", string(out))
	}
	p.stop()
	require.Contains(t, refusal(t, exec.Command(binary, "healthcheck", "--http", ":"+port)), "connection refused")
}
