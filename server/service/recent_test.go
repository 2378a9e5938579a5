package service

import (
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
)

// TestRecentDenialsAreBounded checks that only a part of a flood of denials is recorded, that long keys are cut, and
// that nothing is recorded some time after the last Look.
func TestRecentDenialsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r RecentDenials
		flood := func() {
			for i := range 2 * recentPerSecond {
				key := []byte(strconv.Itoa(i) + strings.Repeat("x", RecentKeyBytes))
				r.Note(&engine.Op{Key: key, Limit: engine.Limit{Algorithm: engine.FixedWindow}},
					&engine.Decision{RetryMs: 5})
			}
		}
		r.Look()
		flood()
		found := r.Look()
		require.Len(t, found, recentKept)
		require.Equal(t, strconv.Itoa(recentPerSecond-1), strings.TrimRight(found[0].Key, "x"),
			"the newest of those that were noted")
		require.Len(t, found[0].Key, RecentKeyBytes)
		require.Equal(t, "fixed", found[0].By)

		time.Sleep(recentWatch + time.Second)
		flood()
		require.False(t, r.watched.Load())
		require.Equal(t, found, r.Look())
	})
}
