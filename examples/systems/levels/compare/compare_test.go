package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// small are sizes that take a moment to measure.
var small = sizes{limit: 20, window: time.Second, long: 500, decisions: 200}

// TestCompare checks the known properties of each algorithm. They do not depend on the machine.
func TestCompare(t *testing.T) {
	w, err := startWeir()
	require.NoError(t, err)
	defer w.stop()
	all, err := measureAll(t.Context(), w, w.rdb, small)
	require.NoError(t, err)
	byName := map[string]figures{}
	for _, f := range all {
		require.Positive(t, f.each, f.name)
		require.Positive(t, f.bytes, f.name)
		byName[f.name] = f
	}
	for name, want := range map[string]struct{ most, burst, again int }{
		"token bucket":    {39, 21, 20}, // the burst, and the refill in a window
		"leaky bucket":    {20, 2, 20},  // evenly
		"fixed window":    {40, 40, 20}, // twice the limit around the end of a window
		"sliding log":     {20, 20, 20}, // exactly
		"sliding counter": {38, 20, 1},  // assumes that the previous window was even
	} {
		f := byName[name]
		require.Equal(t, want, struct{ most, burst, again int }{f.most, f.burst, f.again}, name)
		if name == "sliding log" {
			require.Greater(t, f.longBytes, 5*f.bytes)
		} else {
			require.Equal(t, f.bytes, f.longBytes, name)
		}
	}
	var text strings.Builder
	require.NoError(t, write(&text, all, small))
	require.Contains(t, text.String(), "| limit 20 in 1s |")
	require.Contains(t, text.String(), "\n| fixed window, `RL.FIXED` | 40 | 40 | 20 |")
}

// TestComparePage checks that bench/algorithms.md shows the output of the program, except for the last column, which
// depends on the machine.
func TestComparePage(t *testing.T) {
	page, err := os.ReadFile("../../../../bench/algorithms.md")
	require.NoError(t, err)
	w, err := startWeir()
	require.NoError(t, err)
	defer w.stop()
	s := defaults
	s.decisions = 100
	all, err := measureAll(t.Context(), w, w.rdb, s)
	require.NoError(t, err)
	var text strings.Builder
	require.NoError(t, write(&text, all, s))
	for _, line := range strings.Split(strings.TrimSpace(text.String()), "\n") {
		last := strings.LastIndex(strings.TrimSuffix(line, " |"), "|")
		require.Contains(t, string(page), "\n"+line[:last+1])
	}
}

func TestCompareRefuses(t *testing.T) {
	for _, s := range []sizes{{}, {limit: 19, window: time.Second, long: 1, decisions: 1},
		{limit: 20, window: 30 * time.Millisecond, long: 1, decisions: 1}} {
		require.Error(t, run(t.Context(), "", s))
	}
}
