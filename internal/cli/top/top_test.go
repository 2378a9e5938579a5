package top

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/weirproc"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/httpapi"
	"github.com/weir-project/weir/server/service"
)

func TestMain(m *testing.M) { os.Exit(weirproc.Main(m)) }

// squeezed replaces each run of white space with one space.
func squeezed(s string) string { return strings.Join(strings.Fields(s), " ") }

// TestTopGoesOn checks that views follow each other without terminal control codes when stdout is not a terminal.
func TestTopGoesOn(t *testing.T) {
	p := weirproc.Start(t)
	c := &Command{HTTP: p.HTTP}
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
	p.Kill()
	require.Error(t, c.watch(t.Context(), look, print), "watch must fail once the server is gone")
}

func TestTopRatesAndTimes(t *testing.T) {
	at := func(nowMs, allowed int64, counts ...int64) *httpapi.Status {
		return &httpapi.Status{NowMs: nowMs, Allowed: allowed,
			Latency: httpapi.LatencyStatus{BoundsS: []float64{1e-6, 2e-3}, Counts: counts}}
	}
	first, second := at(1000, 10, 5, 5, 0), at(3000, 30, 5, 14, 1)
	v := view{"x", second, first, first}
	allowed := func(s *httpapi.Status) int64 { return s.Allowed }
	require.Equal(t, 10.0, v.rate(allowed))
	require.Equal(t, "2ms > 2ms", v.quantile(.5)+" "+v.quantile(.99),
		"quantiles must cover only the calls since the previous view")
	require.Equal(t, "1µs", (&view{"x", first, nil, nil}).quantile(.5),
		"the first view's quantiles must cover all calls")
	require.Equal(t, "-", perSecond((&view{"x", first, nil, nil}).rate(allowed)))
	require.Equal(t, 5.0, (&view{"x", at(3000, 10), first, first}).grew(first, 99, 10), "begun anew")
	cluster := *second
	cluster.Cluster = &httpapi.ClusterStatus{Nodes: []httpapi.NodeStatus{{ID: "a", Role: "follower", Up: true, Lag: 7,
		ClockAheadMs: -3, Addr: "h:1"}}}
	text := squeezed((&view{"x", &cluster, nil, nil}).text())
	cluster.Cluster.Self, cluster.Cluster.StaleMs = "a", 1500
	require.Contains(t, (&view{"x", &cluster, nil, nil}).leaderText(), "; answered by a, stale: 1.5s")
	cluster.Cluster.StaleMs = limiter.UnknownAge.Milliseconds()
	require.Contains(t, (&view{"x", &cluster, nil, nil}).leaderText(), "; answered by a, stale: age unknown")
	cluster.Cluster.Groups.Leaders, cluster.Cluster.StaleMs = "led by b", 0
	require.Equal(t, "led by b; answered by a", (&view{"x", &cluster, nil, nil}).leaderText())
	require.Contains(t, text, "NODE ROLE UP ENTRIES BEHIND CLOCK AHEAD CLIENTS a follower yes 7 -3 ms h:1")
}

func TestTopFitsTheScreen(t *testing.T) {
	got := frame([]string{"häuser", "b", "c"}, 3, 2)
	require.Equal(t, "\x1b[Hhäu\x1b[K\r\nb\x1b[K\x1b[J", got)
}

// TestTopRefusesWhatIsNoStatus checks that an answer which is not a weir status is an error.
func TestTopRefusesWhatIsNoStatus(t *testing.T) {
	for _, body := range []string{"", "{}", `{"latency":{"bounds_s":[1],"counts":[1]}}`, "<html>"} {
		_, err := readStatusJSON(&http.Response{StatusCode: http.StatusOK, Body: readCloser{strings.NewReader(body)}})
		require.ErrorIs(t, err, errNoStatus, body)
	}
	_, err := readStatusJSON(
		&http.Response{StatusCode: http.StatusTeapot, Status: "418", Body: readCloser{strings.NewReader("tea\x1b")}})
	require.EqualError(t, err, fmt.Sprintf("%v: the server answers 418: tea�", errNoStatus))
}

type readCloser struct{ *strings.Reader }

func (readCloser) Close() error { return nil }

// TestTopGivesTheTerminalBack checks that every terminal mode that top sets is reset at the end.
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

func TestTopShowsWhatIsNotSupported(t *testing.T) {
	v := view{now: &httpapi.Status{}}
	require.NotContains(t, strings.Join(v.head(), "\n"), "refused")
	v.now.Unsupported = make([]service.UnsupportedUse, 2)
	v.now.Unsupported[0].Command, v.now.Unsupported[0].Client, v.now.Unsupported[0].Count = "lpush", "api\x1b", 3
	require.Contains(t, strings.Join(v.head(), "\n"), "refused   lpush of api")
	require.NotContains(t, strings.Join(v.head(), "\n"), "\x1b")
}
