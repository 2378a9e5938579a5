package main

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/certs/certtest"
	"github.com/weir-project/weir/internal/cli/doctor"
	"github.com/weir-project/weir/internal/freeport"
)

// runDoctor runs weir doctor, and returns its findings and whether it succeeded.
func runDoctor(t *testing.T, args ...string) (found []doctor.Finding, content bool) {
	t.Helper()
	var out, complaint bytes.Buffer
	cmd := exec.Command(binary, append([]string{"doctor", "--json"}, args...)...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = &out, &complaint, t.TempDir()
	err := cmd.Run()
	require.NoError(t, json.Unmarshal(out.Bytes(), &found), "%s%s", &out, &complaint)
	if err != nil {
		require.Equal(t, 1, cmd.ProcessState.ExitCode())
		require.Contains(t, complaint.String(), doctor.ErrUnfit.Error())
	}
	return found, err == nil
}

// says requires that some finding of a check contains the text.
func says(t *testing.T, found []doctor.Finding, v doctor.Verdict, check, text string) {
	t.Helper()
	for _, f := range found {
		if f.Verdict == v && f.Check == check && bytes.Contains([]byte(f.Found), []byte(text)) {
			require.Equal(t, v == doctor.Fine, f.Do == "",
				"%s: a finding has advice if and only if it is not fine", text)
			return
		}
	}
	t.Fatalf("nothing says %s %s %q: %+v", v, check, text, found)
}

func TestDoctorBeforeTheFirstStart(t *testing.T) {
	addr, web := freeport.Addr(t), freeport.Addr(t)
	config := configWith(t, "listen: "+addr+"\nhttp: "+web+"\nmax-memory: 64mb\n")
	found, content := runDoctor(t, "--config", config)
	require.True(t, content, "%+v", found)
	says(t, found, doctor.Fine, "config", config)
	says(t, found, doctor.Fine, "ports", addr+" for clients is free")
	says(t, found, doctor.Fine, "ports", web+" for probes is free")
	says(t, found, doctor.Fine, "versions", "weir-data is empty or does not exist yet")
	says(t, found, doctor.Fine, "disk", "a write of 4 KiB with fsync takes ")
	says(t, found, doctor.Fine, "limits", "limiters may take 64.0mb of ")
	says(t, found, doctor.Fine, "cluster", "a single server")
}

// TestDoctorFindsWhatIsWrong covers mistakes that keep a server from starting, or from keeping its guarantees.
func TestDoctorFindsWhatIsWrong(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	go func() { // some other program
		for {
			c, err := taken.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	foreign := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(foreign, "letters"), nil, 0o600))
	newer := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(newer, "FORMAT"), []byte("weir data format 99\n"), 0o600))
	other := t.TempDir()
	writeIdentity(t, other, "b")
	ca := certtest.NewCA(t, "ca")
	expired := ca.Issue("node", func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })
	alien := certtest.NewCA(t, "alien").Issue("a", nil)
	tls := []string{"--tls-listen", freeport.Addr(t), "--tls-cert-file", expired.Cert, "--tls-key-file"}
	node := []string{"--node-id", "a", "--raft-addr", freeport.Addr(t)}
	for _, c := range []struct {
		what  string
		args  []string
		check string
		text  string
	}{
		{"a port that is taken", []string{"--listen", taken.Addr().String()}, "ports", taken.Addr().String()},
		{"a port of another machine", []string{"--listen", "192.0.2.1:6380", "--protected-mode=false"}, "ports",
			"192.0.2.1:6380"},
		{"any client", []string{"--listen", "0.0.0.0:0"}, "ports", "without a password"},
		{"a port for TLS that is taken", []string{"--tls-listen", taken.Addr().String(), "--tls-cert-file", alien.Cert,
			"--tls-key-file", alien.Key}, "ports", taken.Addr().String() + " for clients with TLS"},
		{"a port for Envoys that is taken", []string{"--rls", taken.Addr().String()}, "ports",
			taken.Addr().String() + " for Envoys"},
		{"any Envoy", []string{"--rls", "0.0.0.0:0"}, "ports", "--rls"},
		{"any node", append([]string{"--raft-listen", "0.0.0.0:0"}, node...), "ports",
			"--raft-listen 0.0.0.0:0 can be reached"},
		{"no password file", []string{"--requirepass-file", "gone"}, "config", "gone"},
		{"a directory of something else", []string{"--data-dir", foreign}, "versions", "letters"},
		{"a directory of a newer weir", []string{"--data-dir", newer}, "versions", "format 99"},
		{"a directory of another node", append([]string{"--data-dir", other}, node...), "versions", `node "b"`},
		{"a file for a directory", []string{"--data-dir", filepath.Join(newer, "FORMAT")}, "disk",
			"is not a directory"},
		{"an expired certificate", append(tls, expired.Key), "certificates", "expired on"},
		{"another's key", append(tls, alien.Key), "certificates", "private key does not match"},
		{"a certificate of another node",
			append([]string{"--raft-tls-cert-file", expired.Cert, "--raft-tls-key-file", expired.Key,
				"--raft-tls-ca-file", ca.File}, node...), "certificates", `not a certificate of node "a"`},
		{"an unknown authority",
			append([]string{"--raft-tls-cert-file", alien.Cert, "--raft-tls-key-file", alien.Key, "--raft-tls-ca-file",
				ca.File}, node...), "certificates", "signed this node's certificate"},
	} {
		t.Run(c.what, func(t *testing.T) {
			found, content := runDoctor(
				t, append([]string{"--listen", "127.0.0.1:0", "--http", freeport.Addr(t)}, c.args...)...)
			require.False(t, content)
			says(t, found, doctor.Wrong, c.check, c.text)
		})
	}
}

// writeIdentity makes a directory one of a node that has not joined a cluster.
func writeIdentity(t *testing.T, dir, id string) {
	t.Helper()
	b := fmt.Appendf(nil, `{"Version":1,"NodeID":%q`, id)
	sum := crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
	b = fmt.Appendf(b, `,"Checksum":"%08x"}`, sum)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "NODE"), b, 0o600))
}

// TestDoctorKnowsNodesThatComeBack covers a directory of a later incarnation of the node. A node that joins need not
// name an odd number of others.
func TestDoctorKnowsNodesThatComeBack(t *testing.T) {
	dir := t.TempDir()
	writeIdentity(t, dir, "a~1k2")
	others, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer others.Close()
	addr := others.Addr().String()
	found, _ := runDoctor(t, "--listen", "127.0.0.1:0", "--http", freeport.Addr(t), "--data-dir", dir, "--node-id", "a",
		"--raft-addr", freeport.Addr(t), "--join", addr+","+addr)
	says(t, found, doctor.Fine, "versions", "belongs to this node")
	says(t, found, doctor.Fine, "cluster", "2 nodes in --join")
}

// TestDoctorAsksTheServer checks that doctor asks a running server, with the server's own password.
func TestDoctorAsksTheServer(t *testing.T) {
	password := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(password, []byte("sesame\n"), 0o600))
	dir := t.TempDir()
	p := start(t, "--requirepass-file", password, "--data-dir", dir, "--max-memory=64mb", "--max-clients=77")
	web := p.web[len("http://"):]
	flags := []string{"--listen", p.addr, "--http", web, "--data-dir", dir, "--max-memory=64mb", "--max-clients=77"}
	found, content := runDoctor(t, append(flags, "--requirepass-file", password)...)
	require.True(t, content, "%+v", found)
	says(t, found, doctor.Fine, "ports", p.addr+" for clients: weir answers")
	says(t, found, doctor.Fine, "ports", web+" for probes answers ok")
	says(t, found, doctor.Fine, "versions", "and so is the server")
	says(t, found, doctor.Fine, "versions", "data format 6")
	says(t, found, doctor.Fine, "limits", "the server accepts 77 clients, 1 are connected")
	says(t, found, doctor.Fine, "clock", "behind the wall clock")

	found, _ = runDoctor(t, flags...)
	says(t, found, doctor.Doubt, "ports", p.addr+" answers NOAUTH")
	found, _ = runDoctor(t, append(flags, "--requirepass-file", password, "--max-memory=32mb")...)
	says(t, found, doctor.Doubt, "limits", "another --max-memory, 64.0mb")
	found, content = runDoctor(t, append(flags, "--requirepass-file", password, "--http", freeport.Addr(t))...)
	require.False(t, content)
	says(t, found, doctor.Wrong, "ports", "nothing listens there, but the server runs")
	found, _ = runDoctor(t, "--listen", p.addr, "--http", web, "--requirepass-file", password)
	says(t, found, doctor.Doubt, "versions", "/weir-data is empty: this is not its --data-dir")
	p.stop()
	found, _ = runDoctor(t, append(flags, "--requirepass-file", password)...)
	says(t, found, doctor.Fine, "ports", p.addr+" for clients is free")
	says(t, found, doctor.Fine, "versions", "data format 6")
}

// TestDoctorKnowsTheServersCertificate checks that doctor asks a server that speaks only TLS if it presents the
// certificate of the flags.
func TestDoctorKnowsTheServersCertificate(t *testing.T) {
	ca := certtest.NewCA(t, "ca")
	own, others := ca.Issue("own", nil), ca.Issue("own", nil)
	p := start(t, "--tls-listen=127.0.0.1:0", "--tls-cert-file", own.Cert, "--tls-key-file", own.Key, "--data-dir=")
	addr := p.said("tls_listen")
	found, _ := runDoctor(t, "--listen=", "--tls-listen", addr, "--tls-cert-file", own.Cert, "--tls-key-file", own.Key)
	says(t, found, doctor.Fine, "ports", addr+" for clients: weir answers")
	says(t, found, doctor.Doubt, "certificates", "expires on")
	found, _ = runDoctor(t, "--listen=", "--tls-listen", addr, "--tls-cert-file", others.Cert,
		"--tls-key-file", others.Key)
	says(t, found, doctor.Wrong, "ports", "presents another certificate")
}
