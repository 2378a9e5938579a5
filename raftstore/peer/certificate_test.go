package peer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"net/url"
	"testing"
	"time"

	"github.com/weir-project/weir/internal/logtest"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/certs"
	"github.com/weir-project/weir/certs/certtest"
)

// openWith opens a port with a certificate, or without TLS if files is nil.
func openWith(t *testing.T, id, secret string, files *certs.Files) (*Port, *logtest.Buffer) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	said := &logtest.Buffer{}
	hub := HubConfig{Secret: []byte(secret)}
	if files != nil {
		hub.Certificates, err = certs.Open(*files, slog.New(slog.DiscardHandler))
		require.NoError(t, err)
	}
	p := openPort(t, l, hub, PortConfig{
		Self:   func() Identity { return Identity{NodeID: id, ClusterID: "one"} },
		Logger: slog.New(slog.NewTextHandler(said, nil)),
	}, func(conn net.Conn, from Identity) {
		ServeCalls(conn, from, func(from Identity, method byte, payload []byte) (byte, []byte) {
			return method, append([]byte(from.NodeID+":"), payload...)
		})
	})
	t.Cleanup(func() { p.Close() })
	return p, said
}

func TestNodesKnowEachOtherByCertificate(t *testing.T) {
	ca := certtest.NewCA(t, "nodes")
	for name, c := range map[string]struct {
		secret string
		names  func(*x509.Certificate)
	}{
		"a DNS name": {"", nil}, "a URI": {"", certtest.URI("weir://node/b")}, "and a secret": {"secret", nil},
	} {
		t.Run(name, func(t *testing.T) {
			mine, theirs := ca.Issue("a", nil), ca.Issue("b", c.names)
			a, _ := openWith(t, "a~1", c.secret, &mine)
			b, _ := openWith(t, "b", c.secret, &theirs)
			client := NewClient(a, b.Addr().String(), "b")
			defer client.Close()
			_, answer, err := client.Call(context.Background(), 1, make([]byte, 100_000))
			require.NoError(t, err)
			require.Equal(t, "a~1:", string(answer[:4]))

			conn, err := a.Raft("a:1", func(string) string { return "b" }).Dial("unused", time.Millisecond)
			require.Error(t, err)
			require.Nil(t, conn)
		})
	}
}

// TestCertificatesOfOtherNodesAreRefused checks that only a node's own certificate proves its identity and opens the
// port for it. The logs of both sides explain a refusal.
func TestCertificatesOfOtherNodesAreRefused(t *testing.T) {
	ca, foreign := certtest.NewCA(t, "nodes"), certtest.NewCA(t, "nodes")
	good := ca.Issue("b", nil)
	issued := func(by *certtest.CA, name string, change func(*x509.Certificate)) *certs.Files {
		f := by.Issue(name, change)
		return &f
	}
	trusting := func(f *certs.Files) *certs.Files { f.CA = ca.File; return f }
	clientsOnly := func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }
	for name, c := range map[string]struct {
		files           *certs.Files
		dialer          error
		dialerSays      string
		acceptor        string
		refusedOnDialed string // what "a" logs when "b" dials it
	}{
		"no TLS": {nil, ErrNotWeir, "", "does not speak TLS", "does not speak"},
		"another authority": {trusting(issued(foreign, "a", nil)), ErrOwnRefused, "unknown certificate authority",
			"signed by unknown authority", "this node's certificate"},
		"distrusts ours": {issued(foreign, "a", nil), ErrCertificate, "signed by unknown authority",
			"bad certificate", "this node's certificate"},
		"expired": {issued(ca, "a", certtest.Expired), ErrOwnRefused, "expired certificate", "has expired",
			"this node's certificate"},
		"another node": {issued(ca, "c", nil), ErrRefused, `it names c, the node says it is "a"`,
			"it names c", ""},
		"a wildcard": {issued(ca, "*", nil), ErrRefused, "it names *", "it names *", ""},
		"another kind of URI": {issued(ca, "", certtest.URI("weir://client/a")), ErrRefused,
			"it names weir://client/a", "it names weir://client/a", ""},
		"not for this purpose": {issued(ca, "a", clientsOnly), ErrOwnRefused, "bad certificate",
			"incompatible key usage", ""},
	} {
		t.Run(name, func(t *testing.T) {
			b, said := openWith(t, "b", "", &good)
			a, _ := openWith(t, "a", "", c.files)
			_, _, err := a.Dial(context.Background(), b.Addr().String(), CallService)
			require.ErrorIs(t, err, c.dialer)
			require.ErrorContains(t, err, c.dialerSays)
			require.Eventually(t, func() bool { return said.Has(c.acceptor) }, patience, time.Millisecond)

			b, _ = openWith(t, "b", "", &good) // a new port, which has logged nothing yet
			a, said = openWith(t, "a", "", c.files)
			if name == "not for this purpose" {
				return // this certificate is valid for a server
			}
			_, _, err = b.Dial(context.Background(), a.Addr().String(), RaftService)
			require.Error(t, err, "the dialer must refuse the node too")
			if c.refusedOnDialed != "" {
				require.Eventually(t, func() bool { return said.Has(c.refusedOnDialed) }, patience, time.Millisecond)
			}
		})
	}
}

// TestPeersWithoutACertificate checks that a dialer without a certificate learns nothing, whatever it sends.
func TestPeersWithoutACertificate(t *testing.T) {
	good := certtest.NewCA(t, "nodes").Issue("b", nil)
	b, _ := openWith(t, "b", "", &good)
	conn, err := tls.Dial("tcp", b.Addr().String(), &tls.Config{InsecureSkipVerify: true})
	require.NoError(t, err, "in TLS 1.3 the client finishes its handshake first")
	defer conn.Close()
	_, err = conn.Write((&greeting{service: RaftService, self: Identity{"a", "one"}}).encode())
	require.NoError(t, err)
	conn.SetReadDeadline(time.Now().Add(patience))
	n, err := conn.Read(make([]byte, 1))
	require.ErrorContains(t, err, "certificate required")
	require.Zero(t, n)
	_, err = tls.Dial("tcp", b.Addr().String(), &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12})
	require.ErrorContains(t, err, "protocol version")
}

func TestVouches(t *testing.T) {
	for _, c := range []struct {
		dns, uri, id string
		want         bool
	}{
		{"a", "", "a", true}, {"a", "", "a~x1", true}, {"a", "", "b", false}, {"a", "", "A", false},
		{"", "weir://node/a", "a", true},
		{"", "weir://node/a%20b", "a b", true}, {"", "weir://node/a/b", "a", false}, {"a.example", "", "a", false},
		{"", "", "", false},
	} {
		cert := &x509.Certificate{DNSNames: []string{c.dns}}
		if c.uri != "" {
			u, err := url.Parse(c.uri)
			require.NoError(t, err)
			cert.URIs, cert.DNSNames = append(cert.URIs, u), nil
		}
		if c.dns == "" {
			cert.DNSNames = nil
		}
		require.Equal(t, c.want, CertifiesNode(cert, c.id), "%+v", c)
	}
}
