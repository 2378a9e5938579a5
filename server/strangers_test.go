package server

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/weir-project/weir/server/httpapi"
)

// strangerAddr is where these tests' floods come from: another source than 127.0.0.1.
// Where one source leaves room anyway, half of the flood comes from secondAddr.
const strangerAddr, secondAddr = "127.0.0.2", "127.0.0.4"

// dialAs connects from one of this machine's addresses.
func dialAs(t testing.TB, from, to string) *peer {
	t.Helper()
	nc, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).Dial("tcp", to)
	require.NoError(t, err)
	t.Cleanup(func() { _ = nc.Close() })
	require.NoError(t, nc.SetDeadline(time.Now().Add(testWait)))
	return &peer{Conn: nc, t: t, in: bufio.NewReader(nc)}
}

// A stranger's connections that send no whole command make room for clients from other
// addresses, and for a client from his own.
func TestSilentClientsMakeRoom(t *testing.T) {
	const most = 32 // two of them are reserved
	srv := startWire(t, Config{MaxClients: most}, nil)
	known := dialAs(t, strangerAddr, srv.addr)
	known.send("PING\r\n")
	known.expect(pong)
	for i := range 2 * most {
		stranger := dialAs(t, strangerAddr, srv.addr)
		if i%2 == 0 {
			stranger.send("*1\r\n$4\r\nPI")
		}
	}
	for _, from := range []string{"127.0.0.1", strangerAddr} {
		client := dialAs(t, from, srv.addr)
		client.send("PING\r\n")
		client.expect(pong)
	}
	known.send("PING\r\n")
	known.expect(pong)
	require.Zero(t, srv.Wire.Rejected.Load())
	require.Positive(t, srv.Wire.EvictedClients.Load())
}

// Clients that have sent commands are not evicted, however many one address has; a few
// places are left for others.
func TestClientsOfOneAddressLeaveRoom(t *testing.T) {
	const most, reserved = 32, 2
	srv := startWire(t, Config{MaxClients: most}, nil)
	var strangers []*peer
	for range most - reserved {
		p := dialAs(t, strangerAddr, srv.addr)
		p.send("PING\r\n")
		p.expect(pong)
		strangers = append(strangers, p)
	}
	require.Equal(t, tooManyClients, dialAs(t, strangerAddr, srv.addr).expectEnd())
	for range reserved {
		p := srv.dial(t)
		p.send("PING\r\n")
		p.expect(pong)
	}
	require.Equal(t, tooManyClients, srv.dial(t).expectEnd())
	for _, p := range strangers {
		p.send("PING\r\n")
		p.expect(pong)
	}
	require.Zero(t, srv.Wire.EvictedClients.Load())
}

// Where there is a password, only a login proves a client.
func TestClientsWithoutALoginMakeRoom(t *testing.T) {
	const most = 32
	srv := startWire(t, Config{MaxClients: most, Password: "sesame", AuthTimeout: time.Hour}, nil)
	known := dialAs(t, strangerAddr, srv.addr)
	known.send("AUTH sesame\r\n")
	known.expect("+OK\r\n")
	for range 2 * most {
		p := dialAs(t, strangerAddr, srv.addr)
		p.send("PING\r\n")
		p.expect("-NOAUTH")
	}
	client := srv.dial(t)
	client.send("AUTH sesame\r\nPING\r\n")
	client.expect("+OK\r\n" + pong)
	known.send("PING\r\n")
	known.expect(pong)
	require.Zero(t, srv.Wire.Rejected.Load())
}

// Whatever strangers have sent on as many HTTP connections as there may be, a probe from
// another address is answered, also one that has connected before and is slow.
func TestStrangersKeepNoProbeOut(t *testing.T) {
	const request = "GET /livez HTTP/1.1\r\nHost: x\r\n"
	for name, sent := range map[string]string{
		"nothing": "", "half a header": request + "X: ", "a request without its body": request + "Content-Length: 9\r\n\r\n",
		"a request": request + "\r\n", "two requests": strings.Repeat(request+"\r\n", 2),
	} {
		t.Run(name, func(t *testing.T) {
			srv, addr := startHTTP(t)
			slow := dialAs(t, "127.0.0.1", addr)
			slow.send(request)
			for i := range 2 * httpapi.MaxConns {
				p := dialAs(t, []string{strangerAddr, secondAddr}[i%2], addr)
				_, _ = io.WriteString(p, sent) // it may be cut already
			}
			for range 20 {
				probe := dialAs(t, "127.0.0.1", addr)
				probe.send(request + "Connection: close\r\n\r\n")
				require.Contains(t, probe.expectEnd(), "200 OK")
			}
			slow.send("Connection: close\r\n\r\n")
			require.Contains(t, slow.expectEnd(), "200 OK")
			require.Positive(t, srv.Wire.EvictedHTTP.Load())
		})
	}
}

// startHTTP serves the HTTP side of a server until the test ends.
func startHTTP(t *testing.T) (srv *Server, addr string) {
	srv = newTestServer(t, Config{}).Server
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	h, ended := newHTTP(srv), make(chan error, 1)
	go func() { ended <- h.Serve(ln) }()
	t.Cleanup(func() {
		require.NoError(t, h.Close())
		require.NoError(t, <-ended)
	})
	return srv, ln.Addr().String()
}

// A connection is proven also by a request whose body nobody wanted.
func TestAnAnsweredHTTPConnectionOutlivesSilentOnes(t *testing.T) {
	srv, addr := startHTTP(t)
	known := dialAs(t, strangerAddr, addr)
	known.send("POST /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody")
	reply, err := http.ReadResponse(known.in, nil)
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, reply.Body)
	require.NoError(t, err)
	for range 2 * httpapi.MaxConns {
		dialAs(t, strangerAddr, addr)
	}
	require.Eventually(t, func() bool { return srv.Wire.EvictedHTTP.Load() > httpapi.MaxConns }, testWait, time.Millisecond)
	known.send("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
	known.expect("HTTP/1.1 200 OK\r\n")
}

// A stranger who may ask, and has asked once on each connection, keeps no Envoy out, and an
// Envoy whose connection is still being made is not cut for his.
func TestRLSConnectionsAreEvictedBySource(t *testing.T) {
	const most = 32
	s := limited(t, Config{})
	r, addr := startRLS(t, s.Server)
	setRoom(r, most)
	slow := dialAs(t, "127.0.0.1", addr)
	slow.send("PRI * HTTP/2.0\r\n\r\n")
	for _, complete := range []bool{true, false} {
		for range 2 * most {
			if complete {
				require.NoError(t, callAs(t, strangerAddr, addr))
			} else {
				dialAs(t, strangerAddr, addr)
			}
		}
		require.NoError(t, callAs(t, "127.0.0.3", addr))
	}
	slow.send("SM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
	const settingsAck = "\x00\x00\x00\x04\x01\x00\x00\x00\x00"
	var got []byte
	for !strings.Contains(string(got), settingsAck) {
		b, err := slow.in.ReadByte()
		require.NoError(t, err)
		got = append(got, b)
	}
	require.Positive(t, s.Wire.EvictedRLS.Load())
	require.Zero(t, s.Wire.Rejected.Load())
}

// callAs asks by a connection of its own, which stays open until the test ends.
func callAs(t *testing.T, from, to string) error {
	conn, err := grpc.NewClient("passthrough:///"+to, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(_ context.Context, addr string) (net.Conn, error) {
			return dialAs(t, from, addr).Conn, nil
		}))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), testWait)
	defer cancel()
	_, err = rlsv3.NewRateLimitServiceClient(conn).ShouldRateLimit(ctx, rlsCall(entries("user", "1")))
	return err
}
