package server

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/server/httpapi"
	"github.com/weir-project/weir/server/servertest"
)

// floodAddr is the source of the floods in these tests, because 127.0.0.1 is the source of other clients. If one
// source alone cannot fill the server, half of the flood comes from secondAddr.
const floodAddr, secondAddr = "127.0.0.2", "127.0.0.4"

// TestSilentClientsMakeRoom checks that connections which send no whole command are evicted for clients from other
// addresses, and for a client from the same address.
func TestSilentClientsMakeRoom(t *testing.T) {
	const most = 32 // two of them are reserved
	srv := startWire(t, Config{MaxClients: most}, nil)
	known := servertest.DialAs(t, floodAddr, srv.addr)
	known.Send("PING\r\n")
	known.Expect(pong)
	for i := range 2 * most {
		flooder := servertest.DialAs(t, floodAddr, srv.addr)
		if i%2 == 0 {
			flooder.Send("*1\r\n$4\r\nPI")
		}
	}
	for _, from := range []string{"127.0.0.1", floodAddr} {
		client := servertest.DialAs(t, from, srv.addr)
		client.Send("PING\r\n")
		client.Expect(pong)
	}
	known.Send("PING\r\n")
	known.Expect(pong)
	require.Zero(t, srv.Wire.Rejected.Load())
	require.Positive(t, srv.Wire.EvictedClients.Load())
}

// TestClientsOfOneAddressLeaveRoom checks that clients which have sent commands are never evicted, and that one
// address leaves a few places for others.
func TestClientsOfOneAddressLeaveRoom(t *testing.T) {
	const most, reserved = 32, 2
	srv := startWire(t, Config{MaxClients: most}, nil)
	var flooders []*servertest.Peer
	for range most - reserved {
		p := servertest.DialAs(t, floodAddr, srv.addr)
		p.Send("PING\r\n")
		p.Expect(pong)
		flooders = append(flooders, p)
	}
	require.Equal(t, tooManyClients, servertest.DialAs(t, floodAddr, srv.addr).ExpectEnd())
	for range reserved {
		p := srv.dial(t)
		p.Send("PING\r\n")
		p.Expect(pong)
	}
	require.Equal(t, tooManyClients, srv.dial(t).ExpectEnd())
	for _, p := range flooders {
		p.Send("PING\r\n")
		p.Expect(pong)
	}
	require.Zero(t, srv.Wire.EvictedClients.Load())
}

// TestClientsWithoutALoginMakeRoom checks that with a password only a login protects a client from eviction.
func TestClientsWithoutALoginMakeRoom(t *testing.T) {
	const most = 32
	srv := startWire(t, Config{MaxClients: most, Password: "sesame", AuthTimeout: time.Hour}, nil)
	known := servertest.DialAs(t, floodAddr, srv.addr)
	known.Send("AUTH sesame\r\n")
	known.Expect("+OK\r\n")
	for range 2 * most {
		p := servertest.DialAs(t, floodAddr, srv.addr)
		p.Send("PING\r\n")
		p.Expect("-NOAUTH")
	}
	client := srv.dial(t)
	client.Send("AUTH sesame\r\nPING\r\n")
	client.Expect("+OK\r\n" + pong)
	known.Send("PING\r\n")
	known.Expect(pong)
	require.Zero(t, srv.Wire.Rejected.Load())
}

// TestConnectionFloodKeepsNoProbeOut checks that a probe from another address is answered during a flood on all HTTP
// connections. This also holds for a slow probe that has connected before.
func TestConnectionFloodKeepsNoProbeOut(t *testing.T) {
	const request = "GET /livez HTTP/1.1\r\nHost: x\r\n"
	for name, sent := range map[string]string{
		"nothing": "", "half a header": request + "X: ", "a request without its body": request +
			"Content-Length: 9\r\n\r\n",
		"a request": request + "\r\n", "two requests": strings.Repeat(request+"\r\n", 2),
	} {
		t.Run(name, func(t *testing.T) {
			srv, addr := startHTTP(t)
			slow := servertest.DialAs(t, "127.0.0.1", addr)
			slow.Send(request)
			for i := range 2 * httpapi.MaxConns {
				p := servertest.DialAs(t, []string{floodAddr, secondAddr}[i%2], addr)
				_, _ = io.WriteString(p, sent) // it may be closed already
			}
			for range 20 {
				probe := servertest.DialAs(t, "127.0.0.1", addr)
				probe.Send(request + "Connection: close\r\n\r\n")
				require.Contains(t, probe.ExpectEnd(), "200 OK")
			}
			slow.Send("Connection: close\r\n\r\n")
			require.Contains(t, slow.ExpectEnd(), "200 OK")
			require.Positive(t, srv.Wire.EvictedHTTP.Load())
		})
	}
}

// startHTTP serves the HTTP side of a server until the test ends.
func startHTTP(t *testing.T) (srv *Server, addr string) {
	srv, err := New(Config{Logger: slog.New(slog.DiscardHandler)}, servertest.NewTableLimiter())
	require.NoError(t, err)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	h, err := httpapi.New(srv.Service, srv, httpapi.CheckOff, false)
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- h.Serve(ln) }()
	t.Cleanup(func() {
		require.NoError(t, h.Close())
		require.NoError(t, <-ended)
	})
	return srv, ln.Addr().String()
}

// TestAnAnsweredHTTPConnectionOutlivesSilentOnes checks that a request whose body the server ignored also protects
// its connection from eviction.
func TestAnAnsweredHTTPConnectionOutlivesSilentOnes(t *testing.T) {
	srv, addr := startHTTP(t)
	known := servertest.DialAs(t, floodAddr, addr)
	known.Send("POST /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody")
	reply, err := http.ReadResponse(known.In, nil)
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, reply.Body)
	require.NoError(t, err)
	for range 2 * httpapi.MaxConns {
		servertest.DialAs(t, floodAddr, addr)
	}
	require.Eventually(t, func() bool { return srv.Wire.EvictedHTTP.Load() > httpapi.MaxConns },
		servertest.Patience, time.Millisecond)
	known.Send("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
	known.Expect("HTTP/1.1 200 OK\r\n")
}

func TestOneAddressMayHaveSoMany(t *testing.T) {
	srv := startWire(t, Config{MaxPerSource: 2}, nil)
	a, b := srv.dial(t), srv.dial(t)
	for _, p := range []*servertest.Peer{a, b} {
		p.Send("PING\r\n")
		p.Expect(pong)
	}
	assert.Equal(t, tooManyFromAddress, srv.dial(t).ExpectEnd())
	assert.EqualValues(t, 1, srv.Wire.Rejected.Load())
	require.NoError(t, a.Close())
	require.Eventually(t, func() bool { return srv.connCount() == 1 }, servertest.Patience, time.Millisecond)
	srv.answers(t)
}
