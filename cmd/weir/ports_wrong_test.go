package main

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestWrongPorts checks that each port names the flag of the port that its client wants.
func TestWrongPorts(t *testing.T) {
	p := start(t, "--data-dir=")
	for name, c := range map[string]struct{ addr, send, want string }{
		"Redis at HTTP": {strings.TrimPrefix(p.web, "http://"), "*1\r\n$4\r\nPING\r\n", "-ERR this port takes HTTP. Redis " +
			"clients have a port of their own: --listen, 127.0.0.1:6380 unless set\r\n"},
		"HTTP at Redis": {p.addr, "GET / HTTP/1.1\r\n\r\n", "This port takes Redis clients. HTTP has a port of its own: " +
			"--http, 127.0.0.1:6381 unless set.\n"},
	} {
		t.Run(name, func(t *testing.T) {
			nc, err := net.Dial("tcp", c.addr)
			require.NoError(t, err)
			defer nc.Close()
			require.NoError(t, nc.SetDeadline(time.Now().Add(patience)))
			_, err = io.WriteString(nc, c.send)
			require.NoError(t, err)
			said, _ := io.ReadAll(nc) // a reset may follow the answer
			require.Contains(t, string(said), c.want)
		})
	}
	for _, path := range []string{"/check", "/check/login?key=alice"} {
		reply, err := http.Get(p.web + path)
		require.NoError(t, err)
		said, err := io.ReadAll(reply.Body)
		require.NoError(t, err)
		require.NoError(t, reply.Body.Close())
		require.Equal(t, http.StatusNotFound, reply.StatusCode)
		require.Contains(t, string(said), "start weir with --http-check protected")
	}
}
