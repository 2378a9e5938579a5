package main

import (
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/certs/certtest"
	"github.com/weir-project/weir/internal/cli/doctor"
	"github.com/weir-project/weir/internal/freeport"
)

// TestSlipsOfRunningServers makes mistakes that a single process cannot recognise. The server continues, and its log
// describes the problem.
func TestSlipsOfRunningServers(t *testing.T) {
	raft := freeport.Addr(t)
	a := start(t, "--node-id=a", "--data-dir=a", "--raft-addr="+raft, "--join="+raft)
	joins := func(t *testing.T, args ...string) *process { return start(t, append(args, "--data-dir=new")...) }
	expired := certtest.NewCA(t, "ca").Issue("weir", func(c *x509.Certificate) {
		c.NotAfter = time.Now().Add(-time.Minute)
	})
	// The caller repeats send until the log has a line, because the log rate is limited to one line a second.
	send := func(addr, text string) {
		if conn, err := net.Dial("tcp", addr); err == nil {
			_, _ = io.WriteString(conn, text)
			conn.Close()
		}
	}
	other := freeport.Addr(t)
	for _, c := range []struct {
		what string
		node []string // the arguments of the node to start; none looks at node a
		poke func()
		says []string
	}{
		{"a port for clients in --join",
			[]string{"--node-id=b", "--raft-addr=" + other, "--join=" + a.addr + "," + other}, nil,
			[]string{"found 1 of 2 nodes of --join", "no node answers at " + a.addr,
				"does not speak weir's inter-node protocol"}},
		{"two nodes with one id",
			[]string{"--node-id=a", "--raft-addr=" + other, "--join=" + raft + "," + other}, nil,
			[]string{"the node at " + raft + " has the id", "as this one: give each node its own --node-id",
				"if it is this node", other}},
		{"an HTTP request to the port for clients", nil, func() { send(a.addr, "GET / HTTP/1.1\r\nHost: x\r\n\r\n") },
			[]string{"an HTTP request reached the RESP port"}},
		{"redis-cli to the port for nodes", nil, func() { send(raft, "*1\r\n$4\r\nPING\r\n") },
			[]string{"a connection to the inter-node port was refused", "does not speak weir's inter-node protocol"}},
		{"a certificate that has expired",
			[]string{"--tls-listen=127.0.0.1:0", "--tls-cert-file=" + expired.Cert, "--tls-key-file=" + expired.Key},
			nil,
			[]string{"the certificate is not valid now", "--tls-cert-file", expired.Cert, "replace the file"}},
	} {
		t.Run(c.what, func(t *testing.T) {
			p := a
			if c.node != nil {
				p = joins(t, c.node...)
			}
			require.Eventually(t, func() bool {
				if c.poke != nil {
					c.poke()
				}
				return line(p, c.says) != ""
			}, patience, 50*time.Millisecond, c.says)
			t.Logf("| %s | runs | %s |", c.what, line(p, c.says))
		})
	}
}

// line returns the log line that contains all the texts.
func line(p *process, texts []string) string {
	for line := range strings.Lines(p.output()) {
		has := true
		for _, text := range texts {
			has = has && strings.Contains(line, text)
		}
		if has {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// TestDoctorDoubtsOpenSecrets checks that doctor doubts a password file which every user can read. A line break at
// the end of the file is accepted.
func TestDoctorDoubtsOpenSecrets(t *testing.T) {
	open, closed := filepath.Join(t.TempDir(), "open"), filepath.Join(t.TempDir(), "closed")
	for path, mode := range map[string]os.FileMode{open: 0o644, closed: 0o640} {
		require.NoError(t, os.WriteFile(path, []byte("sesame\n"), mode))
	}
	found, content := runDoctor(t, "--listen", freeport.Addr(t), "--http", freeport.Addr(t), "--requirepass-file", open)
	require.True(t, content, "%+v", found)
	says(t, found, doctor.Doubt, "config", "--requirepass-file "+open+" can be read by every user")
	found, _ = runDoctor(t, "--listen", freeport.Addr(t), "--http", freeport.Addr(t), "--requirepass-file", closed)
	require.NotContains(t, fmt.Sprint(found), "can be read by every user")
}
