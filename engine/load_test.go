package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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
