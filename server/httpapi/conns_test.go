package httpapi

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = nc.Close() })
	return nc
}

// TestAnHTTPRequestInFlightIsNotCut checks that a complete request is answered, however many clients connect meanwhile.
func TestAnHTTPRequestInFlightIsNotCut(t *testing.T) {
	const most = 16
	conns := newWebConns(most, new(atomic.Int64))
	begun, release := make(chan struct{}), make(chan struct{})
	web := &http.Server{ConnContext: conns.admit, ConnState: conns.changed,
		Handler: conns.serve(http.HandlerFunc(
			func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				begun <- struct{}{}
				<-release
				writePlain(w, http.StatusOK, "done")
			}))}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- web.Serve(ln) }()
	t.Cleanup(func() {
		require.NoError(t, web.Close())
		require.ErrorIs(t, <-ended, http.ErrServerClosed)
	})
	var busy []net.Conn
	for _, request := range []string{"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody"} {
		p := dial(t, ln.Addr().String())
		_, err := io.WriteString(p, request)
		require.NoError(t, err)
		<-begun
		busy = append(busy, p)
	}
	for range 2 * most {
		dial(t, ln.Addr().String())
	}
	require.Eventually(t, func() bool { return conns.table.Len() == most-1 }, time.Minute, time.Millisecond)
	close(release)
	for _, p := range busy {
		reply, err := http.ReadResponse(bufio.NewReader(p), nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, reply.StatusCode)
	}
	require.NoError(t, web.Close())
	require.Eventually(t, func() bool { return conns.table.Len() == 0 }, time.Minute, time.Millisecond)
}
