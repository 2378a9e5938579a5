package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/server/httpapi"
)

// weir runs the binary, requires success, and returns its output.
func weir(t *testing.T, args ...string) string {
	t.Helper()
	var complaint bytes.Buffer
	cmd := exec.Command(binary, args...)
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	require.NoError(t, err, "weir %s: %s", strings.Join(args, " "), &complaint)
	return string(out)
}

// squeezed replaces each run of white space with one space.
func squeezed(s string) string { return strings.Join(strings.Fields(s), " ") }

// TestTop checks that top shows the same figures as INFO.
func TestTop(t *testing.T) {
	password := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(password, []byte("sesame"), 0o600))
	// Limiter time decides how fast the heaviest keys decay.
	p := start(t, "--test-clock", "--data-dir=", "--max-memory=64mb", "--requirepass-file", password)
	c := p.dial()
	for _, command := range [][]any{{"AUTH", "sesame"},
		{"RL.POLICY", "SET", "login", "LIMIT", "FIXED", "1d", "2", "FIRST"},
		{"RL.CHECK", "login", "user:42"}, {"RL.CHECK", "login", "user:42"}, {"RL.CHECK", "login", "user:42"},
		{"RL.TOKENBUCKET", "bad\x1b[2Jkey", "1/m", "9", "COST", "7"}} {
		_, err := c.Do(command[0].(string), command[1:]...)
		require.NoError(t, err)
	}
	at := strings.TrimPrefix(p.web, "http://")
	text := weir(t, "top", "--once", "--http", at, "--password-file", password)
	require.NotContains(t, text, "\x1b", "text of clients must not control the terminal")
	flat := squeezed(text)
	require.Contains(t, flat,
		"one node requests 0/s allowed, 0/s denied, in the last 1 s; 3 allowed and 1 denied since the start decided "+
			"50 % within -")
	require.Regexp(t, `of 64\.0mb \(\d\.\d %\) for 2 limiters, 0 evicted with 0 units`, flat)
	require.Contains(t, flat, "ALLOWED/S DENIED/S DENIED % ALLOWED DENIED SHADOWED POLICY, last 1 s 0 0 - 2 1 0 login")
	require.Contains(t, flat, "UNITS MOST ADMITTED (half-life 1 min) 7 bad [2Jkey 2 policy|login|0|user:42")
	require.Contains(t, flat, "UNITS MOST DENIED (half-life 1 min) 1 policy|login|0|user:42")

	var status httpapi.Status
	require.NoError(t, json.Unmarshal(
		[]byte(weir(t, "top", "--once", "--json", "--http", at, "--password-file", password)), &status))
	require.EqualValues(t, 3, status.Allowed)
	require.Contains(t, refusal(t, exec.Command(binary, "top", "--once", "--http", at)), "401 Unauthorized")
}
