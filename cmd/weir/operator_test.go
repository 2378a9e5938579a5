package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/redcon"

	"github.com/weir-project/weir/certs/certtest"
	"github.com/weir-project/weir/internal/cli/doctor"
	"github.com/weir-project/weir/internal/cli/healthcheck"
	"github.com/weir-project/weir/internal/cli/terminal"
	"github.com/weir-project/weir/internal/freeport"
)

// answering starts a server of the Redis protocol that sends answer's result to each command unchanged.
func answering(t *testing.T, answer func(words []string) string) (addr string) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for r := redcon.NewReader(c); ; {
					command, err := r.ReadCommand()
					if err != nil {
						return
					}
					words := make([]string, len(command.Args))
					for i, word := range command.Args {
						words[i] = string(word)
					}
					if words[0] == "PING" { // every command asks this first, to see whether a Redis server answers
						fmt.Fprint(c, "+PONG\r\n")
						continue
					}
					fmt.Fprint(c, answer(words))
				}
			}()
		}
	}()
	return ln.Addr().String()
}

// speaks are characters that control a terminal: an escape sequence, and a C1 control. UTF-8 encodes the latter as
// two bytes that JSON does not escape.
const speaks = "\x1b[2J\u009b2J\x7f"

func requireSilent(t *testing.T, out string) {
	t.Helper()
	require.NotContains(t, out, "\x1b")
	require.NotContains(t, out, "\u009b")
	require.NotContains(t, out, "\x7f")
}

// TestWhatClientsWroteIsSilent checks that no text of a client controls the operator's terminal. The JSON output
// keeps the text unchanged.
func TestWhatClientsWroteIsSilent(t *testing.T) {
	p := start(t, "--data-dir=")
	at, key := "--addr="+p.addr, "bad"+speaks
	p.do("RL.FIXED", key, "1d", 5)
	p.do("RL.BLOCK", key, "1h", "REASON", speaks)
	p.do("RL.POLICY", "SET", "login", "LIMIT", "FIXED", "1d", "2", "FIRST")
	p.do("RL.POLICY", "OVERRIDE", "login", key, "LIMIT", "FIXED", "1d", "3", "FIRST")
	file := configWith(t,
		`policies: {login: {limits: [FIXED 1d 3], overrides: [{key: "bad\e[2J\x9b2J\x7f", limits: [FIXED 1d 4]}]}}`)
	for _, args := range [][]string{
		{"keys", "list"}, {"keys", "list", "--json"}, {"keys", "look", key}, {"keys", "look", key, "--json"},
		{"keys", "reset", "--match=*", "--dry-run"}, {"keys", "reset", "--match=*", "--dry-run", "--json"},
		{"policy", "export"}, {"policy", "export", "--json"},
		{"policy", "diff", "-f", file}, {"policy", "diff", "--json", "-f", file},
	} {
		out, err := exec.Command(binary, append(args, at)...).Output()
		if args[1] != "diff" {
			require.NoError(t, err)
		}
		require.Contains(t, string(out), "bad", "%v", args)
		requireSilent(t, string(out))
	}
	require.Equal(t, []string{key}, listed(t, "list", "--json", at))
	web := strings.TrimPrefix(p.web, "http://")
	requireSilent(t, weir(t, "top", "--once", "--json", "--http", web))
}

// TestDoctorIsSilent checks that the answer of an unknown program does not control the operator's terminal either.
func TestDoctorIsSilent(t *testing.T) {
	addr := answering(t, func([]string) string { return "-ERR " + speaks + "\r\n" })
	out, _ := exec.Command(binary, "doctor", "--listen", addr, "--http=", "--data-dir=").Output()
	require.Contains(t, string(out), addr+" answers ERR")
	requireSilent(t, string(out))
}

// TestKeysThatTheNextLeaderChangesAgainCountOnce checks that weir keys counts a key once although a redirection makes
// it send the command again.
func TestKeysThatTheNextLeaderChangesAgainCountOnce(t *testing.T) {
	second := answering(t, func([]string) string { return "+OK\r\n" })
	first := answering(t, func(words []string) string {
		if words[1] == "b" {
			return "-MOVED 0 " + second + "\r\n"
		}
		return "+OK\r\n"
	})
	require.Equal(t, "a\nb\n2 blocked\n", weir(t, "keys", "block", "a", "b", "--addr="+first))
}

func TestCommandsRefuseWhatMakesNoSense(t *testing.T) {
	for want, args := range map[string][]string{
		"--limit must be 0 or more, like 100, not -1": {"keys", "list", "--limit=-1"},
		"--tls-ca-file needs --tls":                   {"keys", "list", "--tls-ca-file=ca.pem"},
		"--tls-cert-file needs --tls": {"cluster", "status", "--tls-cert-file=c.pem",
			"--tls-key-file=c.key"},
		"--tls-key-file needs --tls":     {"backup", "file", "--tls-key-file=c.key"},
		"--tls-ca-file needs --http-tls": {"top", "--once", "--tls-ca-file=ca.pem"},
	} {
		cmd := exec.Command(binary, args...)
		cmd.Dir = t.TempDir()
		require.Contains(t, refusal(t, cmd), want)
	}
}

// TestDoctorKnowsPortsOfAnotherServer checks that doctor reports ports which another server already uses.
func TestDoctorKnowsPortsOfAnotherServer(t *testing.T) {
	web := start(t, "--data-dir=").web[len("http://"):]
	found, content := runDoctor(t, "--listen", freeport.Addr(t), "--http", web)
	require.False(t, content)
	says(t, found, doctor.Wrong, "ports", web+" for probes belongs to another server")
}

// TestDoctorBesideAServerThatKeepsSilent checks that doctor recognises a running server although it refuses doctor's
// questions.
func TestDoctorBesideAServerThatKeepsSilent(t *testing.T) {
	dir, password := t.TempDir(), filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(password, []byte("sesame\n"), 0o600))
	raft := freeport.Addr(t)
	node := []string{"--node-id=a", "--raft-addr=" + raft, "--join=" + raft, "--data-dir=" + dir}
	p := start(t, append(node, "--requirepass-file", password)...)
	require.Eventually(t, func() bool {
		return (&healthcheck.Command{HTTP: p.web[len("http://"):]}).Ask(
			io.Discard) == nil
	}, patience, 10*time.Millisecond)
	found, content := runDoctor(t, append(node, "--listen", p.addr, "--http", p.web[len("http://"):])...)
	require.True(t, content, "%+v", found)
	says(t, found, doctor.Doubt, "ports", p.addr+" answers NOAUTH")
	says(t, found, doctor.Fine, "ports", raft+" for nodes is open")

	ca := certtest.NewCA(t, "ca")
	own := ca.Issue("own", nil)
	flags := []string{"--listen=", "--tls-cert-file", own.Cert, "--tls-key-file", own.Key, "--tls-ca-file", ca.File,
		"--tls-auth-clients=required", "--data-dir="}
	tls := start(t, append(flags, "--listen=127.0.0.1:0", "--tls-listen=127.0.0.1:0")...)
	addr := tls.said("tls_listen")
	found, content = runDoctor(t, append(flags, "--tls-listen", addr, "--http", tls.web[len("http://"):])...)
	require.True(t, content, "%+v", found)
	says(t, found, doctor.Doubt, "ports", addr+" requires a client certificate")
}

// TestBackupBesideAnUnfinishedOne checks that a backup is refused beside the unfinished file of another one. The
// error says what to do, and the file stays.
func TestBackupBesideAnUnfinishedOne(t *testing.T) {
	file := filepath.Join(t.TempDir(), "b")
	require.NoError(t, os.WriteFile(file+partSuffix, nil, 0o600))
	require.Contains(t, refusal(t, exec.Command(binary, "backup", file)),
		"another backup is running, or one was interrupted; if none runs, remove this file")
	require.FileExists(t, file+partSuffix)
}

func TestWriteJSONIsWhatWasGiven(t *testing.T) {
	var out bytes.Buffer
	given := map[string]string{"k" + speaks: "é\u0080\u009f\u00a0" + speaks}
	require.NoError(t, terminal.WriteJSON(&out, given))
	requireSilent(t, out.String())
	var got map[string]string
	require.NoError(t, json.Unmarshal(out.Bytes(), &got))
	require.Equal(t, given, got)
}
