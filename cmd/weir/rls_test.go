package main

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/weir-project/weir/certs/certtest"
	"github.com/weir-project/weir/internal/cli/listener"
	"github.com/weir-project/weir/internal/rlspb"
	"github.com/weir-project/weir/server/servertest"
)

// TestServeEnvoysByTLS checks that Envoys need the same certificates as other clients.
func TestServeEnvoysByTLS(t *testing.T) {
	ca := certtest.NewCA(t, "ca")
	files, mine := ca.Issue("weir", nil), ca.Issue("envoy", nil)
	p := start(t, certFlags(files, "--rls=127.0.0.1:0", "--rls-tls", "--tls-ca-file="+ca.File,
		"--tls-auth-clients=required")...)
	call := func(certificates ...tls.Certificate) codes.Code {
		config := &tls.Config{RootCAs: ca.Pool(), ServerName: "weir", Certificates: certificates}
		conn, err := grpc.NewClient(p.said("rls"), grpc.WithTransportCredentials(credentials.NewTLS(config)))
		require.NoError(t, err)
		defer conn.Close()
		_, err = servertest.Envoy{Conn: conn}.ShouldRateLimit(t.Context(), &rlspb.Request{})
		return status.Code(err)
	}
	pair, err := tls.LoadX509KeyPair(mine.Cert, mine.Key)
	require.NoError(t, err)
	require.Equal(t, codes.InvalidArgument, call(pair), "the empty call must reach the service")
	require.Equal(t, codes.Unavailable, call())
	p.stop()
}

// TestCertificateOfAnEnvoy checks that the certificate of an Envoy logs in the user that it names, and no other one.
func TestCertificateOfAnEnvoy(t *testing.T) {
	ca := certtest.NewCA(t, "ca")
	users := filepath.Join(t.TempDir(), "users")
	require.NoError(t, os.WriteFile(users, []byte("user envoy on san:envoy ~* +@decide\n"), 0o600))
	p := start(t, certFlags(ca.Issue("weir", nil), "--rls=127.0.0.1:0", "--rls-tls", "--tls-ca-file="+ca.File,
		"--tls-auth-clients=required", "--users-file="+users)...)
	for name, want := range map[string]codes.Code{"envoy": codes.InvalidArgument, "other": codes.Unauthenticated} {
		mine := ca.Issue(name, nil)
		pair, err := tls.LoadX509KeyPair(mine.Cert, mine.Key)
		require.NoError(t, err)
		config := &tls.Config{RootCAs: ca.Pool(), ServerName: "weir", Certificates: []tls.Certificate{pair}}
		conn, err := grpc.NewClient(p.said("rls"), grpc.WithTransportCredentials(credentials.NewTLS(config)))
		require.NoError(t, err)
		_, err = servertest.Envoy{Conn: conn}.ShouldRateLimit(t.Context(), &rlspb.Request{})
		require.Equal(t, want, status.Code(err), "the empty call of %s", name)
		require.NoError(t, conn.Close())
	}
	p.stop()
}

func TestEnvoysBeyondThisMachine(t *testing.T) {
	files := certtest.NewCA(t, "ca").Issue("weir", nil)
	s, err := parse("--listen=127.0.0.1:0", "--http=", "--rls=0.0.0.0:0")
	require.NoError(t, err)
	_, err = s.open(s.logger(), false)
	require.ErrorIs(t, err, listener.ErrExposed)
	s, err = parse(certFlags(files, "--listen=127.0.0.1:0", "--http=", "--rls=0.0.0.0:0", "--rls-tls",
		"--tls-auth-clients=required", "--tls-ca-file="+files.CA)...)
	require.NoError(t, err)
	at, err := s.open(s.logger(), false)
	require.NoError(t, err, "a certificate must replace the password")
	require.NoError(t, at.close())
}
