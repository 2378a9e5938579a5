package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/raftstore"
	"github.com/weir-project/weir/server"
)

// weir runs the binary, which must be content, and returns what it printed.
func weir(t *testing.T, args ...string) string {
	t.Helper()
	var complaint bytes.Buffer
	cmd := exec.Command(binary, args...)
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	require.NoError(t, err, "weir %s: %s", strings.Join(args, " "), &complaint)
	return string(out)
}

// squeezed makes one space of many.
func squeezed(s string) string { return strings.Join(strings.Fields(s), " ") }

// What top shows of a running server is what INFO says.
func TestTop(t *testing.T) {
	password := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(password, []byte("sesame"), 0o600))
	// The heaviest keys decay with the limiter clock.
	p := start(t, "--test-clock", "--data-dir=", "--max-memory=64mb", "--requirepass-file", password)
	c := p.dial()
	for _, command := range [][]any{{"AUTH", "sesame"}, {"RL.POLICY", "SET", "login", "LIMIT", "FIXED", "1d", "2", "FIRST"},
		{"RL.CHECK", "login", "user:42"}, {"RL.CHECK", "login", "user:42"}, {"RL.CHECK", "login", "user:42"}, {"RL.TOKENBUCKET", "bad\x1b[2Jkey", "1/m", "9", "COST", "7"}} {
		_, err := c.Do(command[0].(string), command[1:]...)
		require.NoError(t, err)
	}
	at := strings.TrimPrefix(p.web, "http://")
	text := weir(t, "top", "--once", "--http", at, "--password-file", password)
	require.NotContains(t, text, "\x1b", "what clients wrote does not speak to the terminal")
	flat := squeezed(text)
	require.Contains(t, flat, "one node requests 0/s allowed, 0/s denied, in the last 1 s; 3 allowed and 1 denied since the start decided half within -")
	require.Regexp(t, `of 64\.0mb \(\d\.\d %\) for 2 limiters, 0 evicted, 0 units forgotten with them`, flat)
	require.Contains(t, flat, "ALLOWED/S DENIED/S DENIED % ALLOWED DENIED SHADOWED POLICY, last 1 s 0 0 - 2 1 0 login")
	require.Contains(t, flat, "UNITS MOST ADMITTED (half-life 1 min) 7 bad [2Jkey 2 policy|login|0|user:42")
	require.Contains(t, flat, "UNITS MOST DENIED (half-life 1 min) 1 policy|login|0|user:42")

	var status server.Status
	require.NoError(t, json.Unmarshal([]byte(weir(t, "top", "--once", "--json", "--http", at, "--password-file", password)), &status))
	require.EqualValues(t, 3, status.Allowed)
	require.Contains(t, refusal(t, exec.Command(binary, "top", "--once", "--http", at)), "401 Unauthorized")
}

// Where stdout is no terminal, views follow each other without a word to one.
func TestTopGoesOn(t *testing.T) {
	p := start(t, "--data-dir=")
	c := &topCmd{HTTP: strings.TrimPrefix(p.web, "http://")}
	look, err := c.looker()
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var out bytes.Buffer
	print, shown := c.printer(&out), 0
	err = c.watch(ctx, look, func(v *view) error {
		if shown++; shown == 3 {
			cancel()
		}
		return print(v)
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 3, strings.Count(out.String(), "requests"))
	require.NotContains(t, out.String(), "\x1b")
	p.stop()
	require.Error(t, c.watch(t.Context(), look, print), "the server is gone")
}

func TestTopRatesAndTimes(t *testing.T) {
	at := func(nowMs, allowed int64, counts ...int64) *server.Status {
		return &server.Status{NowMs: nowMs, Allowed: allowed, Latency: server.LatencyStatus{BoundsS: []float64{1e-6, 2e-3}, Counts: counts}}
	}
	first, second := at(1000, 10, 5, 5, 0), at(3000, 30, 5, 14, 1)
	v := view{"x", second, first, first}
	allowed := func(s *server.Status) int64 { return s.Allowed }
	require.Equal(t, 10.0, v.rate(allowed))
	require.Equal(t, "2ms > 2ms", v.quantile(.5)+" "+v.quantile(.99), "of what was gained")
	require.Equal(t, "1µs", (&view{"x", first, nil, nil}).quantile(.5), "of all, at first")
	require.Equal(t, "-", perSecond((&view{"x", first, nil, nil}).rate(allowed)))
	require.Equal(t, 5.0, (&view{"x", at(3000, 10), first, first}).grew(first, 99, 10), "begun anew")
	cluster := *second
	cluster.Cluster = &server.ClusterStatus{Nodes: []server.NodeStatus{{ID: "a", Role: "follower", Up: true, Lag: 7, ClockAheadMs: -3, Addr: "h:1"}}}
	text := squeezed((&view{"x", &cluster, nil, nil}).text())
	require.Contains(t, text, "NO LEADER")
	cluster.Cluster.Self, cluster.Cluster.StaleMs = "a", 1500
	require.Contains(t, (&view{"x", &cluster, nil, nil}).leaderText(), "; answered by a, stale: 1.5s")
	cluster.Cluster.StaleMs = raftstore.UnknownAge.Milliseconds()
	require.Contains(t, (&view{"x", &cluster, nil, nil}).leaderText(), "; answered by a, stale: age unknown")
	cluster.Cluster.Leader, cluster.Cluster.StaleMs = "b", 0
	require.Equal(t, "b leads; answered by a", (&view{"x", &cluster, nil, nil}).leaderText())
	require.Contains(t, text, "NODE ROLE UP ENTRIES BEHIND CLOCK AHEAD CLIENTS a follower yes 7 -3 ms h:1")
}

func TestTopFitsTheScreen(t *testing.T) {
	got := frame([]string{"häuser", "b", "c"}, 3, 2)
	require.Equal(t, "\x1b[Hhäu\x1b[K\r\nb\x1b[K\x1b[J", got)
}

// What answers may be no weir.
func TestTopRefusesWhatIsNoStatus(t *testing.T) {
	for _, body := range []string{"", "{}", `{"latency":{"bounds_s":[1],"counts":[1]}}`, "<html>"} {
		_, err := readStatusJSON(&http.Response{StatusCode: http.StatusOK, Body: readCloser{strings.NewReader(body)}})
		require.ErrorIs(t, err, errNoStatus, body)
	}
	_, err := readStatusJSON(&http.Response{StatusCode: http.StatusTeapot, Status: "418", Body: readCloser{strings.NewReader("tea\x1b")}})
	require.EqualError(t, err, fmt.Sprintf("%v: the server answers 418: tea�", errNoStatus))
}

type readCloser struct{ *strings.Reader }

func (readCloser) Close() error { return nil }

// What the terminal is told to do otherwise it is told to do again as before.
func TestTopGivesTheTerminalBack(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	openScreen(w).close()
	require.NoError(t, w.Close())
	told, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Equal(t, "\x1b[?1049h\x1b[?25l\x1b[?7l"+"\x1b[?7h\x1b[?25h\x1b[?1049l", string(told))
}
