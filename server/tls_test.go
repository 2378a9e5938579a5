package server

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/certs"
	"github.com/weir-project/weir/certs/certtest"
	"github.com/weir-project/weir/server/acl"
	"github.com/weir-project/weir/server/commands"
	"github.com/weir-project/weir/server/servertest"
)

// tlsServer serves TLS clients beside a wireServer.
type tlsServer struct {
	*wireServer
	ca    *certtest.CA
	files certs.Files
	addr  string
}

func startTLS(t *testing.T, cfg Config, auth tls.ClientAuthType) *tlsServer {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return serveTLS(t, cfg, auth, ln)
}

func serveTLS(t *testing.T, cfg Config, auth tls.ClientAuthType, ln net.Listener) *tlsServer {
	t.Helper()
	s := &tlsServer{wireServer: startWire(t, cfg, nil), ca: certtest.NewCA(t, "ca"), addr: ln.Addr().String()}
	s.files = s.ca.Issue("weir", nil)
	store, err := certs.Open(s.files, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- s.ServeTLS(ln, store.Server(auth)) }()
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		require.NoError(t, <-ended)
	})
	return s
}

// dialTLS completes a handshake; change can alter the client's configuration.
func (s *tlsServer) dialTLS(t *testing.T, change func(*tls.Config)) (*servertest.Peer, error) {
	t.Helper()
	config := &tls.Config{RootCAs: s.ca.Pool()}
	if change != nil {
		change(config)
	}
	dialer := tls.Dialer{NetDialer: &net.Dialer{Timeout: servertest.Patience}, Config: config}
	nc, err := dialer.Dial("tcp", s.addr)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = nc.Close() })
	require.NoError(t, nc.SetDeadline(time.Now().Add(servertest.Patience)))
	return &servertest.Peer{Conn: nc, T: t, In: bufio.NewReader(nc)}, nil
}

func (s *tlsServer) servesTLS(t *testing.T) {
	t.Helper()
	p, err := s.dialTLS(t, nil)
	require.NoError(t, err)
	p.Send("PING\r\n")
	p.Expect(pong)
	_ = p.Close()
}

func TestClientsOverTLS(t *testing.T) {
	srv := startTLS(t, Config{}, tls.NoClientCert)
	p, err := srv.dialTLS(t, nil)
	require.NoError(t, err)
	p.Send(strings.Repeat(oneDecision, 2000) + "PING\r\n")
	p.Expect(strings.Repeat(decisionAnswer, 2000) + pong)

	watcher, err := srv.dialTLS(t, nil)
	require.NoError(t, err)
	watcher.Send("MONITOR\r\n")
	watcher.Expect("+OK\r\n")
	p.Send("ECHO hi\r\n")
	p.Expect("$2\r\nhi\r\n")
	line, err := watcher.In.ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, line, `"ECHO" "hi"`)

	p.Send("PING\r\nQUIT\r\n")
	p.Expect(pong + "+OK\r\n")
	assert.Empty(t, p.ExpectEnd(), "a clean end: the last replies have arrived")
}

// TestWakingDoesNotHarmTLS checks that the wake-up which frees the buffers of an idle client does not break its TLS
// connection.
func TestWakingDoesNotHarmTLS(t *testing.T) {
	srv := startTLS(t, Config{}, tls.NoClientCert)
	p, err := srv.dialTLS(t, nil)
	require.NoError(t, err)
	for range 20 {
		p.Send(oneDecision)
		p.Expect(decisionAnswer)
		srv.mu.Lock()
		for c := range srv.conns {
			c.wake()
		}
		srv.mu.Unlock()
	}
}

func TestShutdownOverTLSLosesNoReply(t *testing.T) {
	srv := startTLS(t, Config{}, tls.NoClientCert)
	p, err := srv.dialTLS(t, nil)
	require.NoError(t, err)
	p.Send(oneDecision)
	p.Expect(decisionAnswer)
	ctx, cancel := context.WithTimeout(t.Context(), servertest.Patience)
	defer cancel()
	require.NoError(t, srv.Shutdown(ctx))
	require.Empty(t, p.ExpectEnd())
}

func TestTLSVersions(t *testing.T) {
	srv := startTLS(t, Config{}, tls.NoClientCert)
	_, err := srv.dialTLS(t, func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 })
	require.ErrorContains(t, err, "protocol version not supported")
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		_, err = srv.dialTLS(t, func(c *tls.Config) { c.MaxVersion = version })
		require.NoError(t, err)
	}
}

// TestClientCertificates checks that the server accepts or rejects clients by their certificate before the first byte
// of RESP.
func TestClientCertificates(t *testing.T) {
	foreign := certtest.NewCA(t, "ca") // of the same name
	for _, c := range []struct {
		name   string
		auth   tls.ClientAuthType
		show   func(*certtest.CA) *certs.Files
		served bool
	}{
		{"required, none", tls.RequireAndVerifyClientCert, nil, false},
		{"required, good", tls.RequireAndVerifyClientCert,
			func(ca *certtest.CA) *certs.Files { f := ca.Issue("app", nil); return &f }, true},
		{"required, expired", tls.RequireAndVerifyClientCert,
			func(ca *certtest.CA) *certs.Files { f := ca.Issue("app", certtest.Expired); return &f }, false},
		{"required, foreign", tls.RequireAndVerifyClientCert,
			func(*certtest.CA) *certs.Files { f := foreign.Issue("app", nil); return &f }, false},
		{"optional, none", tls.VerifyClientCertIfGiven, nil, true},
		{"optional, foreign", tls.VerifyClientCertIfGiven,
			func(*certtest.CA) *certs.Files { f := foreign.Issue("app", nil); return &f }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			srv := startTLS(t, Config{}, c.auth)
			p, err := srv.dialTLS(t, func(config *tls.Config) {
				if c.show == nil {
					return
				}
				f := c.show(srv.ca)
				cert, err := tls.LoadX509KeyPair(f.Cert, f.Key)
				require.NoError(t, err)
				config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate,
					error) {
					return &cert, nil
				}
			})
			require.NoError(t, err, "in TLS 1.3 the client is done first")
			_, _ = io.WriteString(p, "PING\r\n")
			got, err := io.ReadAll(io.LimitReader(p, int64(len(pong))))
			if c.served {
				require.NoError(t, err)
				require.Equal(t, pong, string(got))
				return
			}
			require.ErrorContains(t, err, "remote error: tls: ")
			require.Empty(t, got)
			require.Eventually(t, func() bool { return srv.Wire.BadHandshakes.Load() == 1 }, servertest.Patience,
				time.Millisecond, "counted once the client has been told")
		})
	}
}

// TestCertificateOfAUser checks that the certificate of the handshake logs the client in, and that a foreign one does not.
func TestCertificateOfAUser(t *testing.T) {
	users := func() (*acl.Users, error) { return commands.ParseUsers([]byte("user app on san:app ~* +@all\n")) }
	srv := startTLS(t, Config{LoadUsers: users}, tls.VerifyClientCertIfGiven)
	who := func(shown ...tls.Certificate) *servertest.Peer {
		p, err := srv.dialTLS(t, func(config *tls.Config) { config.Certificates = shown })
		require.NoError(t, err)
		p.Send("ACL WHOAMI\r\n")
		return p
	}
	f := srv.ca.Issue("app", nil)
	app, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	require.NoError(t, err)
	who(app).Expect("$3\r\napp\r\n")
	who().Expect("-NOAUTH Authentication required.\r\n")
}

// TestReloadUnderLiveConnections checks that new clients get a renewed certificate, and that existing connections
// continue.
func TestReloadUnderLiveConnections(t *testing.T) {
	srv := startTLS(t, Config{}, tls.NoClientCert)
	old, err := srv.dialTLS(t, nil)
	require.NoError(t, err)
	srv.ca.IssueTo(srv.files, "renewed", nil)
	require.Eventually(t, func() bool {
		p, err := srv.dialTLS(t, nil)
		require.NoError(t, err)
		return p.Conn.(*tls.Conn).ConnectionState().PeerCertificates[0].Subject.CommonName == "renewed"
	}, servertest.Patience, 20*time.Millisecond)
	old.Send(oneDecision)
	old.Expect(decisionAnswer)
}

func TestPlainTextOnTheTLSPort(t *testing.T) {
	srv := startTLS(t, Config{}, tls.NoClientCert)
	for _, bytes := range []string{"PING\r\n", "*1\r\n$4\r\nPING\r\n", "GET / HTTP/1.1\r\n\r\n",
		"\x00\x00\x00\x00\x00\x00"} {
		nc, err := net.Dial("tcp", srv.addr)
		require.NoError(t, err)
		p := &servertest.Peer{Conn: nc, T: t, In: bufio.NewReader(nc)}
		p.Send(bytes)
		assert.Equal(t, plainReply, p.ExpectEnd())
		_ = nc.Close()
	}
	srv.servesTLS(t)
}

func TestTLSOnThePlainPort(t *testing.T) {
	srv := startWire(t, Config{}, nil)
	_, err := tls.Dial("tcp", srv.addr, &tls.Config{InsecureSkipVerify: true})
	require.ErrorContains(t, err, "first record does not look like a TLS handshake")
	p := srv.dial(t)
	p.Send("\x16\x03\x01\x00\x05hello") // without a line end, which a handshake may contain by chance
	assert.Equal(t, "-ERR Protocol error: TLS on a port without TLS\r\n", p.ExpectEnd())
	srv.answers(t)
}

// TestHalfOpenHandshakesLeaveOthersServed checks that a thousand clients with an unfinished handshake lock nobody
// out, from the same or another address. They cause no client with a complete handshake to be disconnected.
func TestHalfOpenHandshakesLeaveOthersServed(t *testing.T) {
	for _, from := range []string{"127.0.0.2", "127.0.0.1"} {
		t.Run(from, func(t *testing.T) {
			srv := startTLS(t, Config{}, tls.NoClientCert)
			known, err := srv.dialTLS(t, nil)
			require.NoError(t, err)
			slow := servertest.DialAs(t, "127.0.0.3", srv.addr)
			dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
			var hello bytes.Buffer // the first bytes of a handshake
			fmt.Fprintf(&hello, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
			for range 1000 {
				nc, err := dialer.Dial("tcp", srv.addr)
				require.NoError(t, err)
				defer func() { _ = nc.Close() }()
				_, err = nc.Write(hello.Bytes())
				require.NoError(t, err)
			}
			for range 20 {
				srv.servesTLS(t)
			}
			require.NoError(t, tls.Client(slow.Conn, &tls.Config{InsecureSkipVerify: true}).Handshake(),
				"of an address that has one")
			known.Send("PING\r\n")
			known.Expect(pong)
			require.LessOrEqual(t, srv.handshakes.table.Len(), MaxHandshakes)
		})
	}
}

// TestHandshakesEndWithTheServer checks that a stopped server starts no handshake, and ends those in progress.
func TestHandshakesEndWithTheServer(t *testing.T) {
	h := newHandshakes(new(atomic.Int64))
	defer h.running.Done()
	conn := func() *addressed {
		here, there := net.Pipe()
		t.Cleanup(func() { _ = here.Close(); _ = there.Close() })
		return &addressed{Conn: here, from: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 1}}
	}
	before := conn()
	_, ok := h.begin(before)
	require.True(t, ok)
	h.close()
	require.True(t, before.closed.Load())
	_, ok = h.begin(conn())
	require.False(t, ok)
}

// addressed is a connection from a made-up address.
type addressed struct {
	net.Conn
	from   net.Addr
	closed atomic.Bool
}

func (a *addressed) RemoteAddr() net.Addr { return a.from }
func (a *addressed) Close() error         { a.closed.Store(true); return a.Conn.Close() }

// TestProtectedModeOverTLS checks that a server beyond loopback needs a password, unless it requires client
// certificates.
func TestProtectedModeOverTLS(t *testing.T) {
	for auth, served := range map[tls.ClientAuthType]bool{tls.NoClientCert: false, tls.VerifyClientCertIfGiven: false,
		tls.RequireAndVerifyClientCert: true} {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		srv := serveTLS(t, Config{ProtectedMode: true}, auth, &foreignListener{ln})
		mine := srv.ca.Issue("app", nil)
		cert, err := tls.LoadX509KeyPair(mine.Cert, mine.Key)
		require.NoError(t, err)
		p, err := srv.dialTLS(t, func(c *tls.Config) { c.Certificates = []tls.Certificate{cert} })
		if !served {
			require.Error(t, err)
			continue
		}
		require.NoError(t, err)
		p.Send("PING\r\n")
		p.Expect(pong)
	}
}

// foreignListener reports remote addresses of another machine.
type foreignListener struct{ net.Listener }

func (l *foreignListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &addressed{Conn: nc, from: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 1}}, nil
}
