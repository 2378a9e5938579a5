package commands

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/weir-project/weir/internal/connlimit"
	"github.com/weir-project/weir/server/acl"
	"github.com/weir-project/weir/server/envoyrls"
	"github.com/weir-project/weir/server/servertest"
)

func TestRLSLogins(t *testing.T) {
	users := func() (*acl.Users, error) { return ParseUsers([]byte(someUsers)) }
	for name, c := range map[string]struct {
		cfg           Config
		authorization string
		want          codes.Code
	}{
		"nobody need say":      {Config{}, "", codes.OK},
		"without the password": {Config{Password: "sesame"}, "", codes.Unauthenticated},
		"the wrong password":   {Config{Password: "sesame"}, "Bearer x", codes.Unauthenticated},
		"the password":         {Config{Password: "sesame"}, "Bearer sesame", codes.OK},
		"a user":               {Config{LoadUsers: users}, "Basic YXBwOnBh", codes.OK},                   // app:pa
		"who may not":          {Config{LoadUsers: users}, "Basic bG9va2VyOnBs", codes.PermissionDenied}, // looker:pl
	} {
		t.Run(name, func(t *testing.T) {
			s := newTestServer(t, c.cfg)
			_, envoy := serveRLS(t, s.Shared)
			ctx := t.Context()
			if c.authorization != "" {
				ctx = metadata.AppendToOutgoingContext(ctx, "authorization", c.authorization)
			}
			_, err := envoy.ShouldRateLimit(ctx, rlsCall(entries("user", "app:1")))
			require.Equal(t, c.want, status.Code(err), err)
		})
	}
}

// TestRLSLogsInOnce checks that an Envoy which has logged in is not delayed when others guess passwords from its
// address.
func TestRLSLogsInOnce(t *testing.T) {
	s := newTestServer(t, Config{Password: "sesame"})
	_, known := serveRLS(t, s.Shared)
	_, newcomer := serveRLS(t, s.Shared)
	ask := func(envoy servertest.Envoy) codes.Code {
		ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer sesame")
		_, err := envoy.ShouldRateLimit(ctx, rlsCall(entries("user", "1")))
		return status.Code(err)
	}
	require.Equal(t, codes.OK, ask(known))
	here, now := netip.MustParseAddr("127.0.0.1"), time.Now()
	for range 2 * acl.FreeFailures {
		s.Failed.Note(here, now)
	}
	for tried := true; tried; { // until another login would be refused without a try
		_, tried = s.Failed.Delay(here, now)
	}
	require.Equal(t, codes.OK, ask(known))
	require.Equal(t, codes.Unauthenticated, ask(newcomer))
}

// TestRLSConnectionsAreBounded checks that no new connection is accepted while every connection has a call in flight.
func TestRLSConnectionsAreBounded(t *testing.T) {
	s := limited(t, Config{})
	r, addr := startRLS(t, s.Shared)
	setRoom(r, 1)
	ask := func(ctx context.Context, conn *grpc.ClientConn) error {
		_, err := servertest.Envoy{Conn: conn}.ShouldRateLimit(ctx, rlsCall(entries("user", "1")),
			grpc.WaitForReady(ctx != t.Context()))
		return err
	}
	first, second := dialRLS(t, addr), dialRLS(t, addr)
	require.NoError(t, ask(t.Context(), first))
	r.Conns.Mu.Lock()
	for c := range r.Conns.Open {
		c.Slot.Begin()
	}
	r.Conns.Mu.Unlock()
	require.Equal(t, codes.Unavailable, status.Code(ask(t.Context(), second)))
	require.Positive(t, s.Wire.Rejected.Load())
	require.NoError(t, first.Close())
	require.Eventually(t, func() bool { return s.RLS.Conns.Load() == 0 }, servertest.Patience, time.Millisecond,
		"a new connection must be accepted once a call has ended")
	ctx, cancel := context.WithTimeout(t.Context(), servertest.Patience)
	defer cancel()
	second.ResetConnectBackoff()
	require.NoError(t, ask(ctx, second))
	require.EqualValues(t, 1, s.RLS.Conns.Load())
}

// setRoom lowers the bound on connections.
func setRoom(r *envoyrls.Server, most int) {
	r.Conns.Mu.Lock()
	defer r.Conns.Mu.Unlock()
	r.Conns.Table = connlimit.New(most, 0, &r.Wire.EvictedRLS)
}

// TestRLSConnectionsCannotBeHoarded checks that idle clients of one address cannot lock Envoys out. They hold every
// connection with a call that never ends. New Envoys must still connect, and served Envoys must keep their
// connections.
func TestRLSConnectionsCannotBeHoarded(t *testing.T) {
	const room = 4
	s := limited(t, Config{Password: "sesame"})
	r, addr := startRLS(t, s.Shared)
	setRoom(r, room)
	ask := func(conn *grpc.ClientConn) error {
		ctx, cancel := context.WithTimeout(
			metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer sesame"), servertest.Patience)
		defer cancel()
		_, err := servertest.Envoy{Conn: conn}.ShouldRateLimit(ctx, rlsCall(entries("user", "1")))
		return err
	}
	known := dialRLS(t, addr)
	require.NoError(t, ask(known))
	before := openRLS(r)
	for range 3 * room {
		unauthenticated := dialRLS(t, addr)
		_, err := unauthenticated.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true},
			"/"+envoyrls.ServiceName+"/ShouldRateLimit", grpc.WaitForReady(true))
		require.NoError(t, err, "the client begins a call and sends nothing")
	}
	require.NoError(t, ask(dialRLS(t, addr)), "a new Envoy must be served")
	require.NoError(t, ask(known))
	require.Subset(t, openRLS(r), before, "a served Envoy must keep its connection")
	require.Positive(t, s.Wire.EvictedRLS.Load())
}

// openRLS returns the addresses of the connected clients.
func openRLS(r *envoyrls.Server) (all []string) {
	r.Conns.Mu.Lock()
	defer r.Conns.Mu.Unlock()
	for c := range r.Conns.Open {
		all = append(all, c.RemoteAddr().String())
	}
	return all
}

// fromAfar is a listener whose connections seem to come from another machine.
type fromAfar struct{ net.Listener }

func (l fromAfar) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return remoteConn{Conn: nc}, nil
}

func TestRLSIsProtected(t *testing.T) {
	for _, c := range []struct {
		cfg  Config
		want codes.Code
	}{{Config{ProtectedMode: true}, codes.Unavailable}, {Config{}, codes.OK},
		{Config{ProtectedMode: true, Password: "p"}, codes.Unauthenticated}} {
		s := newTestServer(t, c.cfg)
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		_, envoy := serveRLSOn(t, s.Shared, fromAfar{ln})
		_, err = envoy.ShouldRateLimit(t.Context(), rlsCall(entries("user", "1")))
		require.Equal(t, c.want, status.Code(err), err)
	}
}

// TestRLSCallsOfAConnectionAreBounded checks that calls of one connection beyond rlsMaxStreams wait until others end.
// An Envoy opens another connection for them.
func TestRLSCallsOfAConnectionAreBounded(t *testing.T) {
	conn, _ := serveRLS(t, limited(t, Config{}).Shared)
	call := func(ctx context.Context) error { // begins a call, which never ends by itself
		_, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true}, "/"+envoyrls.ServiceName+
			"/ShouldRateLimit")
		return err
	}
	all, cancel := context.WithTimeout(t.Context(), servertest.Patience)
	defer cancel()
	one, end := context.WithCancel(all)
	require.NoError(t, call(one))
	for range 63 {
		require.NoError(t, call(all))
	}
	short, cancel := context.WithTimeout(all, 50*time.Millisecond)
	defer cancel()
	require.Equal(t, codes.DeadlineExceeded, status.Code(call(short)), "a call beyond the bound must not begin")
	end()
	require.NoError(t, call(all))
}

// TestRLSConnectionsAreEvictedBySource checks that a client that has made one call on each connection cannot lock
// Envoys out. An Envoy whose connection is just opening must not be evicted for that client.
func TestRLSConnectionsAreEvictedBySource(t *testing.T) {
	const most = 32
	s := limited(t, Config{})
	r, addr := startRLS(t, s.Shared)
	setRoom(r, most)
	slow := servertest.DialAs(t, "127.0.0.1", addr)
	slow.Send("PRI * HTTP/2.0\r\n\r\n")
	for _, complete := range []bool{true, false} {
		for range 2 * most {
			if complete {
				require.NoError(t, callAs(t, floodAddr, addr))
			} else {
				servertest.DialAs(t, floodAddr, addr)
			}
		}
		require.NoError(t, callAs(t, "127.0.0.3", addr))
	}
	slow.Send("SM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
	const settingsAck = "\x00\x00\x00\x04\x01\x00\x00\x00\x00"
	var got []byte
	for !strings.Contains(string(got), settingsAck) {
		b, err := slow.In.ReadByte()
		require.NoError(t, err)
		got = append(got, b)
	}
	require.Positive(t, s.Wire.EvictedRLS.Load())
	require.Zero(t, s.Wire.Rejected.Load())
}

// callAs makes a call on a connection of its own, which stays open until the test ends.
func callAs(t *testing.T, from, to string) error {
	conn, err := grpc.NewClient("passthrough:///"+to, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(_ context.Context, addr string) (net.Conn, error) {
			return servertest.DialAs(t, from, addr).Conn, nil
		}))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), servertest.Patience)
	defer cancel()
	_, err = servertest.Envoy{Conn: conn}.ShouldRateLimit(ctx, rlsCall(entries("user", "1")))
	return err
}

// floodAddr is a source other than 127.0.0.1.
const floodAddr = "127.0.0.2"

// remoteConn is a connection that seems to come from floodAddr.
type remoteConn struct{ net.Conn }

func (remoteConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 7} }
