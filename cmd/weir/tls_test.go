package main

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/certs"
	"github.com/weir-project/weir/certs/certtest"
	"github.com/weir-project/weir/internal/cli/healthcheck"
	"github.com/weir-project/weir/internal/cli/policy"
	"github.com/weir-project/weir/internal/cli/remote"
)

func certFlags(f certs.Files, more ...string) []string {
	return append([]string{"--tls-cert-file=" + f.Cert, "--tls-key-file=" + f.Key}, more...)
}

// said returns a field of the log line which says that the server accepts clients.
func (p *process) said(field string) string {
	p.t.Helper()
	for line := range strings.Lines(p.output()) {
		var fields map[string]any
		if json.Unmarshal([]byte(line), &fields) == nil && accepts(fields["msg"]) {
			value, _ := fields[field].(string)
			return value
		}
	}
	return ""
}

func TestServeTLS(t *testing.T) {
	ca := certtest.NewCA(t, "ca")
	files := ca.Issue("weir", nil)
	mine := ca.Issue("operator", nil)
	p := start(t, certFlags(files, "--tls-listen=127.0.0.1:0", "--tls-ca-file="+ca.File, "--tls-auth-clients=required",
		"--http-tls")...)
	require.True(t, strings.HasPrefix(p.web, "https://"), p.web)

	dial := remote.Flags{TLS: true, TLSCAFile: ca.File, TLSCertFile: mine.Cert, TLSKeyFile: mine.Key}
	conn, err := dial.Dial(p.said("tls_listen"), "")
	require.NoError(t, err)
	defer conn.Close()
	reply, err := conn.Do("CONFIG", "GET", "tls-port")
	require.NoError(t, err)
	_, port, _ := strings.Cut(p.said("tls_listen"), ":")
	require.Equal(t, []any{[]byte("tls-port"), []byte(port)}, reply)

	var out bytes.Buffer
	export := &policy.ExportCmd{Server: remote.Server{Addr: p.said("tls_listen"), Flags: dial}, Owner: policy.AnyOwner}
	require.NoError(t, export.Export(&out))
	export.TLSCertFile, export.TLSKeyFile = "", ""
	require.ErrorContains(t, export.Export(&out), "certificate required")
	export.TLSCAFile = ""
	require.ErrorContains(t, export.Export(&out), "certificate signed by unknown authority")

	web := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: ca.Pool()},
		DisableKeepAlives: true}}
	answer, err := web.Get(p.web + "/readyz")
	require.NoError(t, err, "probes must need no certificate")
	_, _ = io.Copy(io.Discard, answer.Body)
	require.NoError(t, answer.Body.Close())
	require.NoError(t, (&healthcheck.Command{HTTP: strings.TrimPrefix(p.web, "https://"), HTTPTLS: true}).Ask(&out))

	ca.IssueTo(files, "renewed", nil)
	p.signal(syscall.SIGHUP)
	require.Eventually(t, func() bool { return strings.Contains(p.output(), "certificate reloaded") },
		patience, 10*time.Millisecond)
	probe, err := tls.Dial("tcp", strings.TrimPrefix(p.web, "https://"), &tls.Config{RootCAs: ca.Pool()})
	require.NoError(t, err)
	require.Equal(t, "renewed", probe.ConnectionState().PeerCertificates[0].Subject.CommonName)
	require.NoError(t, probe.Close())
	_, err = conn.Do("PING")
	require.NoError(t, err, "a connected client must stay connected")

	require.NoError(t, os.WriteFile(files.Key, []byte("rubbish"), 0o600))
	p.signal(syscall.SIGHUP)
	require.Eventually(t, func() bool { return strings.Contains(p.output(), "the previous one stays in use") },
		patience, 10*time.Millisecond)
	_, err = dial.Dial(p.said("tls_listen"), "")
	require.NoError(t, err)
	p.stop()
}

func TestTLSAlone(t *testing.T) {
	files := certtest.NewCA(t, "ca").Issue("weir", nil)
	s, err := parse(certFlags(files, "--listen=", "--http=", "--tls-listen=127.0.0.1:0")...)
	require.NoError(t, err)
	at, err := s.open(s.logger(), false)
	require.NoError(t, err)
	defer at.close()
	require.Nil(t, at.plain)
	require.Equal(t, at.secure.Addr(), at.clients())
}

func TestTLSFlagsThatDoNotFit(t *testing.T) {
	files := certtest.NewCA(t, "ca").Issue("weir", nil)
	nowhere := filepath.Join(t.TempDir(), "none.pem")
	for says, args := range map[string][]string{
		"give --tls-listen, --http-tls or --rls-tls": certFlags(files),
		"give --tls-cert-file":                       {"--tls-listen=127.0.0.1:0"},
		"--tls-ca-file and --tls-auth-clients": certFlags(files, "--tls-listen=127.0.0.1:0",
			"--tls-auth-clients=required"),
		"optional or required": certFlags(files, "--tls-listen=127.0.0.1:0",
			"--tls-ca-file="+files.CA),
		"no such file": {"--http-tls", "--tls-cert-file=" + nowhere,
			"--tls-key-file=" + nowhere},
		"without --tls-listen":      {"--listen="},
		"--tls-listen is 0.0.0.0:0": certFlags(files, "--tls-listen=0.0.0.0:0"),
		"listen beyond this machine without": certFlags(files, "--tls-listen=0.0.0.0:0",
			"--tls-auth-clients=optional", "--tls-ca-file="+files.CA),
		"refusing to listen beyond this machine witho": certFlags(files, "--http-tls", "--http=0.0.0.0:0"),
	} {
		s, err := parse(append([]string{"--listen=127.0.0.1:0", "--http="}, args...)...)
		require.NoError(t, err)
		_, err = s.open(s.logger(), false)
		require.ErrorContains(t, err, says)
	}
	s, err := parse(certFlags(files, "--listen=127.0.0.1:0", "--http=", "--tls-listen=0.0.0.0:0",
		"--tls-auth-clients=required", "--tls-ca-file="+files.CA)...)
	require.NoError(t, err)
	at, err := s.open(s.logger(), false)
	require.NoError(t, err, "a certificate must replace the password")
	require.NoError(t, at.close())
}

func TestNodeCertificateFlags(t *testing.T) {
	ca := certtest.NewCA(t, "nodes")
	flags := func(f certs.Files) []string {
		return []string{"--node-id=a", "--raft-addr=127.0.0.1:0", "--raft-tls-cert-file=" + f.Cert,
			"--raft-tls-key-file=" + f.Key, "--raft-tls-ca-file=" + f.CA}
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	mine := ca.Issue("a", nil)
	for says, args := range map[string][]string{
		"must be given together":             flags(certs.Files{Cert: mine.Cert, Key: mine.Key})[:4],
		`is not a certificate of node "a"`:   flags(ca.Issue("b", nil)),
		"needs that as a DNS name, or weir:": flags(ca.Issue("", certtest.URI("weir://node/b"))),
		"give --raft-tls-cert-file and its":  {"--node-id=a", "--raft-addr=127.0.0.1:0", "--raft-listen=0.0.0.0:0"},
	} {
		s, err := parse(args...)
		require.NoError(t, err)
		_, err = s.clusterOptions(s.logger(), 0, &ports{plain: ln})
		require.ErrorContains(t, err, says)
	}
	s, err := parse(append(flags(mine), "--raft-listen=0.0.0.0:0")...)
	require.NoError(t, err)
	o, err := s.clusterOptions(s.logger(), 0, &ports{plain: ln})
	require.NoError(t, err, "a certificate must replace the cluster secret")
	require.NotNil(t, o.Certificates)
	require.NoError(t, o.Listener.Close())
}
