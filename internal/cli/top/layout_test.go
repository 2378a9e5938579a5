package top

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/server/httpapi"
)

// busyView returns a view with policies, of which the last ones are busy, and with ten keys that were denied and
// admitted.
func busyView(policies, busy int) *view {
	none := httpapi.LatencyStatus{BoundsS: []float64{1}, Counts: []int64{0, 0}}
	then := &httpapi.Status{NowMs: 1_000, UptimeS: 1, Latency: none}
	now := &httpapi.Status{NowMs: 61_000, UptimeS: 61, Latency: none}
	for i := range policies {
		p := httpapi.PolicyStatus{Name: fmt.Sprintf("policy%02d", i), Allowed: int64(100_000 * (policies - i))}
		then.Policies = append(then.Policies, p)
		if i >= policies-busy {
			p.Allowed, p.Limited = p.Allowed+int64(i)*600, p.Limited+600
		}
		now.Policies = append(now.Policies, p)
	}
	for i := range int64(10) {
		key := httpapi.TopKey{Key: fmt.Sprintf("key%d:%s", i, strings.Repeat("k", 100)), Units: 123_456 - i}
		now.Denied, now.Admitted = append(now.Denied, key), append(now.Admitted, key)
	}
	return &view{"x", now, then, then}
}

// TestTopShowsEvents checks the lines of events and of a budget with holds. A screen has the newest events only, and
// keeps its keys.
func TestTopShowsEvents(t *testing.T) {
	v := busyView(2, 2)
	require.NotContains(t, v.text(), "EVENT")
	v.now.Admitted[0].Holds, v.now.Admitted[0].Used, v.now.Admitted[0].Limit = 2, 70, 100
	v.now.Events = []httpapi.EventStatus{
		{AtMs: 1e12, Kind: "threshold", Policy: "budget", Key: "ac\x1bme", Share: 80, Amount: 5, Used: 85, Limit: 100},
		{AtMs: 1e12, Kind: "settled", Policy: "budget", Key: "acme", Amount: 7, Used: 80, Limit: 100},
		{AtMs: 1e12, Kind: "lockout", Policy: "loops", Key: "k", Used: 20, Limit: 20},
		{AtMs: 1e12, Kind: "settled", Policy: "budget", Key: "old", Amount: 7, Used: 80, Limit: 100},
	}
	at := time.UnixMilli(1e12).Format(time.TimeOnly)
	require.Contains(t, squeezed(v.text()), "AMOUNT USED OF AT EVENT, POLICY, KEY 5 85 100 "+at+
		" threshold 80 %, budget, ac\uFFFDme 7 80 100 "+at+" settled, budget, acme 0 20 20 "+at+" lockout, loops, k 7 ")
	require.Contains(t, v.text(), ": 70 of 100 used, open holds: 2")
	for height, events := range map[int]int{12: 0, 24: 2, 50: 3} {
		lines := v.fit(120, height)
		text := strings.Join(lines, "\n")
		require.LessOrEqual(t, len(lines), height, text)
		require.Equal(t, events, strings.Count(text, at), text)
		require.Contains(t, text, "MOST DENIED")
	}
}

// TestTopKeepsKeysVisible checks that keys stay on the screen with any number of policies. Idle policies share one
// line.
func TestTopKeepsKeysVisible(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {120, 50}, {40, 30}, {60, 24}} {
		for _, busy := range []int{0, 2, 31} {
			lines := busyView(31, busy).fit(size[0], size[1])
			text := strings.Join(lines, "\n")
			require.LessOrEqual(t, len(lines), size[1], "%v, %d busy:\n%s", size, busy, text)
			require.Contains(t, text, "MOST DENIED", "%v, %d busy", size, busy)
			require.Contains(t, text, "MOST ADMITTED")
			if size[0] >= narrowWidth {
				require.Contains(t, frame(lines, size[0], size[1]), "POLICY, last 60 s\x1b",
					"the head must name the time that the figures cover")
			}
			require.Equal(t, 2, strings.Count(text, "123456  key0:"), "%v, %d busy:\n%s", size, busy, text)
			if busy == 2 {
				require.Contains(t, text, "29 idle: policy00, policy01")
				require.Less(t, strings.Index(text, "policy30"), strings.Index(text, "policy29"),
					"the busiest policy must come first")
			}
			if busy == 31 {
				require.Contains(t, text, "policy30")
				require.Regexp(t, `(?m)policy00$|^\d+ more$`, text)
			}
		}
	}
}

// TestTopNarrow checks that a narrow screen truncates names but never figures.
func TestTopNarrow(t *testing.T) {
	lines := busyView(31, 2).fit(40, 30)
	shown := frame(lines, 40, 30)
	require.Contains(t, shown, "ALLOWED/S  DENIED/S    %  POLICY, 60 s\x1b[K\r\n      300        10  3.2  policy30")
	require.Contains(t, shown, "123456  key0:kkk")
	require.NotContains(t, shown, strings.Repeat("k", 33))
	for _, word := range []string{"since the start", "evicted with 0 units", "99.9 %"} {
		require.Contains(t, squeezed(strings.ReplaceAll(shown, lineEnd, " ")), word,
			"the head must continue on the next line")
	}
}

// TestTopPrintsAllPolicies checks that output which is printed once lists every policy.
func TestTopPrintsAllPolicies(t *testing.T) {
	text := busyView(31, 2).text()
	for i := range 31 {
		require.Contains(t, text, fmt.Sprintf("  policy%02d\n", i))
	}
	require.Contains(t, squeezed(text), "300 10 3.2 118000 600 0 policy30")
	require.NotContains(t, text, "idle")
}

// TestTopWindow checks that rates of policies cover one minute at most, and nothing from before a restart.
func TestTopWindow(t *testing.T) {
	at := func(nowMs, uptime int64) *httpapi.Status { return &httpapi.Status{NowMs: nowMs, UptimeS: uptime} }
	w := window{at(0, 1), at(30_000, 31), at(60_000, 61)}
	require.EqualValues(t, 30_000, w.since(at(61_000, 62)).NowMs)
	require.Len(t, w, 2)
	require.Nil(t, w.since(at(62_000, 0)))
	require.Empty(t, w)
}
