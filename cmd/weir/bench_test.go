package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestBenchSuitesHaveTheirOwnTimes(t *testing.T) {
	for name, c := range map[string]struct {
		args          []string
		cell, timeout time.Duration
		keys          int
	}{
		"standard":       {nil, 2 * time.Second, 5 * time.Minute, 5_000_000},
		"cluster":        {[]string{"--suite=cluster"}, 1200 * time.Millisecond, 6 * time.Minute, 5_000_000},
		"asked for":      {[]string{"--suite=cluster", "--cell-time=3s", "--timeout=1h", "--snapshot-keys=7"}, 3 * time.Second, time.Hour, 7},
		"quick":          {[]string{"--suite=cluster", "--quick"}, quickCell, 6 * time.Minute, quickKeys},
		"quick, no keys": {[]string{"--suite=cluster", "--quick", "--snapshot-keys=0"}, quickCell, 6 * time.Minute, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var parsed cli
			_, err := newParser(&parsed).Parse(append([]string{"bench"}, c.args...))
			require.NoError(t, err)
			parsed.Bench.complete()
			require.Equal(t, c.cell, parsed.Bench.CellTime)
			require.Equal(t, c.timeout, parsed.Bench.Timeout)
			require.Equal(t, c.keys, parsed.Bench.SnapshotKeys)
		})
	}
}
