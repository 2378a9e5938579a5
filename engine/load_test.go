package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine/internal/arena"
	"github.com/weir-project/weir/engine/internal/store"
)

// TestLoadedEntriesAreInPlace requires that operations after a load need not move the loaded entries in the wheel. A
// million of them would be moved six times each, several before every decision.
func TestLoadedEntriesAreInPlace(t *testing.T) {
	at := Stamp{NowNs: time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC).UnixNano()}
	rate, err := MakeRate(1, 1, int64(time.Second))
	require.NoError(t, err)
	limit := Limit{Algorithm: TokenBucket, Rate: rate, Max: 1000}
	from, out := NewTable(Options{Shards: 1, TrackChanges: true}), make([]Decision, 1)
	for i := range 100 {
		from.Decide(at, []Op{{Key: fmt.Appendf(nil, "k%d", i), Limit: limit, Cost: int64(1 + i)}}, out)
		require.NotZero(t, out[0].Allowed)
	}

	to := loadedWith(at, drained(t, from))
	s := &to.shards[0]
	require.EqualValues(t, 100, s.Keys())
	require.Greater(t, s.Wheel.DueNs, at.NowNs, "no slot is due before its entries are idle")
	require.NoError(t, s.Audit())
}

// TestLimitsOfLoadedEntries loads limiters of two algorithms whose limits have the same stored form.
func TestLimitsOfLoadedEntries(t *testing.T) {
	at := Stamp{NowNs: 1e18}
	from, out := NewTable(Options{Shards: 1, TrackChanges: true}), make([]Decision, 1)
	for i := range 100 {
		limit := Limit{Algorithm: TokenBucket, Rate: Rate{Units: 1, PerNs: 1e9}, Max: 10 + int64(i/30)}
		if i%3 == 0 {
			limit.Algorithm = LeakyBucket
		}
		from.Decide(at, []Op{{Key: fmt.Appendf(nil, "k%d", i), Limit: limit, Cost: 5}}, out)
	}
	to := loadedWith(at, drained(t, from))
	require.NotNil(t, to)
	require.Equal(t, from.StateHash(at), to.StateHash(at))
	s := &to.shards[0]
	s.visit(at, func(*shard) {
		for g := range s.Index.Segments() {
			g.Each(func(r arena.Ref) {
				e := store.Entry(s.Slab.At(r))
				require.EqualValues(t, e.Kind(), s.Limits.At(e.Limit()).Algorithm, string(e.Key()))
			})
		}
	})
}
