package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/certs"
	"github.com/weir-project/weir/certs/certtest"
	"github.com/weir-project/weir/internal/cli/remote"
	"github.com/weir-project/weir/internal/freeport"
	"github.com/weir-project/weir/raftstore/peer"
	"github.com/weir-project/weir/server/commands"
)

func securityPage(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/security.md")
	require.NoError(t, err)
	return string(page)
}

// TestCertificatesOfTheManual checks that the page's OpenSSL commands make certificates that work as described.
func TestCertificatesOfTheManual(t *testing.T) {
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("SKIPPED: openssl is not on the PATH (on Debian: apt install openssl)")
	}
	_, lines, ok := strings.Cut(securityPage(t), "```sh\n# An authority")
	lines = "#" + lines
	require.True(t, ok)
	lines, _, _ = strings.Cut(lines, "```")
	dir := t.TempDir()
	shell := exec.Command("sh", "-e")
	shell.Dir, shell.Stdin = dir, strings.NewReader(lines)
	out, err := shell.CombinedOutput()
	require.NoError(t, err, "%s", out)

	at := func(name string) string { return filepath.Join(dir, name) }
	store, err := certs.Open(certs.Files{Cert: at("b.pem"), Key: at("b.key"), CA: at("nodes-ca.pem")},
		slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.True(t, peer.CertifiesNode(store.Leaf(), "b"))
	require.False(t, peer.CertifiesNode(store.Leaf(), "a"))
	for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		require.Contains(t, store.Leaf().ExtKeyUsage, usage)
	}

	p := start(t, "--tls-listen=127.0.0.1:0", "--tls-cert-file="+at("weir.pem"), "--tls-key-file="+at("weir.key"),
		"--tls-ca-file="+at("ca.pem"), "--tls-auth-clients=required")
	dial := remote.Flags{TLS: true, TLSCAFile: at("ca.pem"), TLSCertFile: at("app.pem"), TLSKeyFile: at("app.key")}
	conn, err := dial.Dial(p.said("tls_listen"), "")
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	p.stop()
}

// TestUsersOfTheManual checks that the server accepts the page's users file and flags unchanged.
func TestUsersOfTheManual(t *testing.T) {
	_, lines, ok := strings.Cut(securityPage(t), "```\n# who uses this server")
	require.True(t, ok)
	lines, _, _ = strings.Cut(lines, "```")
	_, err := commands.ParseUsers([]byte(lines))
	require.NoError(t, err)
	for _, flag := range regexp.MustCompile(`--[a-z][a-z-]+`).FindAllString(securityPage(t), -1) {
		if strings.HasPrefix(flag, "--raft-tls-") ||
			!strings.Contains("--askpass --cacert --everywhere --for --user --tls", flag) {
			var help bytes.Buffer
			c := exec.Command(binary, "serve", "--help")
			c.Stdout = &help
			require.NoError(t, c.Run())
			require.Contains(t, help.String(), flag)
		}
	}
}

// TestUnauthenticatedClientsLearnNothing checks what each port of a node answers to a client without credentials,
// whatever the client sends.
func TestUnauthenticatedClientsLearnNothing(t *testing.T) {
	ca, nodes := certtest.NewCA(t, "ca"), certtest.NewCA(t, "nodes")
	mine := nodes.Issue("node-one", nil)
	raft := freeport.Addr(t)
	p := start(t, certFlags(ca.Issue("weir", nil), "--tls-listen=127.0.0.1:0", "--requirepass=secret",
		"--node-id=node-one", "--raft-addr="+raft, "--join="+raft,
		"--raft-tls-cert-file="+mine.Cert, "--raft-tls-key-file="+mine.Key, "--raft-tls-ca-file="+mine.CA)...)
	secure := func(addr string) (net.Conn, error) {
		return tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true})
	}
	plain := func(addr string) (net.Conn, error) { return net.Dial("tcp", addr) }
	probes := []string{"PING\r\n", "INFO\r\n", "KEYS *\r\n", "HELLO 3\r\n", "CLUSTER SLOTS\r\n", "ACL WHOAMI\r\n",
		"COMMAND\r\n", "EVAL x 0\r\n", "MULTI\r\nEXEC\r\n",
		"*3\r\n$4\r\nAUTH\r\n$7\r\ndefault\r\n$5\r\nguess\r\n", "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"weir-node\x01C0123456789abcdef\x01a\x00", "\x00\x01\x02\x03",
		"*1000000\r\n", "\x16\x03\x01\x00\x05hello"}
	refusals := regexp.MustCompile(`^(-(NOAUTH|WRONGPASS) [^\r]*\r\n|-ERR (Protocol error: |this port takes TLS only|HELLO|EXEC without)[^\r]*\r\n)*` +
		`(HTTP/1\.1 400 Bad Request\r\n([A-Z][A-Za-z-]+: [a-z0-9/; =-]+\r\n)+\r\nThis port takes Redis clients\. HTTP has a port of its own: --http, 127\.0\.0\.1:6381 unless set\.\n)?$`)
	for name, c := range map[string]struct {
		addr string
		dial func(string) (net.Conn, error)
		may  *regexp.Regexp
	}{
		"clients": {p.addr, plain, refusals}, "clients, TLS": {p.said("tls_listen"), secure, refusals},
		"TLS, plain text": {p.said("tls_listen"), plain,
			regexp.MustCompile(`^(-ERR this port takes TLS only[^\r]*\r\n|\x15\x03.*)?$`)},
		"nodes":      {raft, plain, regexp.MustCompile(`^(\x15\x03[\s\S]{0,8})?$`)},
		"nodes, TLS": {raft, secure, regexp.MustCompile(`^$`)},
	} {
		t.Run(name, func(t *testing.T) {
			for _, probe := range probes {
				nc, err := c.dial(c.addr)
				require.NoError(t, err)
				require.NoError(t, nc.SetDeadline(time.Now().Add(patience)))
				_, _ = io.WriteString(nc, probe+"\r\nQUIT\r\n")
				if half, ok := nc.(interface{ CloseWrite() error }); ok {
					_ = half.CloseWrite()
				}
				said, _ := io.ReadAll(nc) // the server cuts the connection, with or without an error
				_ = nc.Close()
				told := strings.ReplaceAll(string(said), "+OK\r\n", "") // QUIT is answered
				require.Regexp(t, c.may, told, "%q", probe)
				require.NotContains(t, told, "node-one")
			}
		})
	}
}
