package httpapi_test

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/server/httpapi"
)

// TestStartingKeepsItsListener checks what a process that loads its state answers, and that another server answers the
// same port afterwards.
func TestStartingKeepsItsListener(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	get := func(path string) string {
		resp, err := http.Get("http://" + ln.Addr().String() + path)
		require.NoError(t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return fmt.Sprint(resp.StatusCode, " ", string(body))
	}
	s := httpapi.NewStarting(func() string { return "loading" }, slog.New(slog.DiscardHandler))
	s.Serve(ln, func(ln net.Listener) net.Listener { return ln })
	require.Equal(t, "200 ok\n", get("/livez"))
	for _, path := range []string{"/readyz", "/metrics", "/", "/check"} {
		require.Equal(t, "503 [-]node loading\n", get(path))
	}
	s.End()
	next := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "next")
	})}
	served := make(chan error, 1)
	go func() { served <- next.Serve(ln) }()
	require.Equal(t, "200 next", get("/livez"))
	require.NoError(t, next.Close())
	require.ErrorIs(t, <-served, http.ErrServerClosed)
}
