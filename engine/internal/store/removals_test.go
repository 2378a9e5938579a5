package store

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine/internal/arena"
)

// TestRemovals checks that keys are returned in the order of insertion, whatever their lengths.
func TestRemovals(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var l removals
	var want []string
	for range 20_000 {
		if rng.IntN(100) < 55 {
			key := make([]byte, rng.IntN(arena.MaxRecord))
			for i := range key {
				key[i] = byte(rng.Uint32())
			}
			l.add('l', key)
			want = append(want, "l"+string(key))
		} else if len(want) > 0 {
			require.Equal(t, want[0], string(l.pop()))
			want = want[1:]
		}
	}
	for len(want) > 0 {
		require.Equal(t, want[0], string(l.pop()))
		want = want[1:]
	}
	require.Empty(t, l)
}
