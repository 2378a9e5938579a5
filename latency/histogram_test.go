package latency

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestBuckets checks that every duration is in the first bucket whose upper bound is not below it.
func TestBuckets(t *testing.T) {
	for i := 1; i < Buckets-1; i++ {
		require.Greater(t, Bound(i), Bound(i-1), "bucket %d", i)
		require.Equal(t, i, bucketOf(Bound(i)), "bound %v", Bound(i))
		require.Equal(t, i, bucketOf(Bound(i-1)+1), "just above %v", Bound(i-1))
	}
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(-1, int64(Bound(Buckets-2))+1).Draw(t, "d"))
		i := bucketOf(d)
		require.True(t, i == Buckets-1 || d <= Bound(i))
		require.True(t, i == 0 || d > Bound(i-1))
	})
}

func TestSnapshot(t *testing.T) {
	var h Histogram
	h.Observe(time.Microsecond, 2)
	h.Observe(3*time.Microsecond, 1)
	h.Observe(time.Hour, 1)
	s := h.Snapshot()
	require.Equal(t, int64(4), s.Count)
	require.Equal(t, time.Hour+5*time.Microsecond, s.Sum)
	c := s.Cumulative()
	require.Len(t, c, octaves+1)
	require.Equal(t, map[float64]uint64{1e-6: 2, 2e-6: 2, 4e-6: 3, 8e-6: 3},
		map[float64]uint64{1e-6: c[1e-6], 2e-6: c[2e-6], 4e-6: c[4e-6], 8e-6: c[8e-6]})
	require.Equal(t, uint64(3), c[Bound(Buckets-2).Seconds()], "an hour is above every bound")
}

func TestObserveDoesNotAllocate(t *testing.T) {
	var h Histogram
	require.Zero(t, testing.AllocsPerRun(100, func() { h.Observe(time.Millisecond, 128) }))
}
