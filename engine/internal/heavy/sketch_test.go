package heavy

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine/internal/rule"
)

// TestSketchBounds checks the promised error of the sketch for every key at many moments. The streams range from very
// uneven to even, and the units from 1 to many.
func TestSketchBounds(t *testing.T) {
	for _, uneven := range []float64{2.5, 1.5, 1.1, 1.01} {
		for _, most := range []int64{1, 1000} {
			t.Run(fmt.Sprint(uneven, "/", most), func(t *testing.T) {
				r := rand.New(rand.NewPCG(7, uint64(most)))
				keys := rand.NewZipf(r, uneven, 1, 99_999)
				exact, total := map[string]int64{}, int64(0)
				var k sketch
				for i := range 60_000 {
					key, units := fmt.Appendf(nil, "key:%d", keys.Uint64()), 1+r.Int64N(most)
					k.add(hashOfText(key), key, units)
					exact[string(key)] += units
					if total += units; i%9999 == 0 {
						requireBounds(t, &k, exact, total)
					}
				}
				requireBounds(t, &k, exact, total)
			})
		}
	}
}

func requireBounds(t *testing.T, k *sketch, exact map[string]int64, total int64) {
	t.Helper()
	found, sum := map[string]bool{}, int64(0)
	for _, h := range k.appendTo(nil) {
		key := string(h.Key)
		found[key] = true
		sum += h.Units
		require.LessOrEqual(t, h.Error, total/sketchSlots, key)
		require.GreaterOrEqual(t, h.Units, exact[key], key)
		require.LessOrEqual(t, h.Units-h.Error, exact[key], key)
	}
	require.Equal(t, total, k.total)
	require.Equal(t, total, sum)
	for key, units := range exact {
		require.True(t, found[key] || units <= total/sketchSlots, "%s has %d of %d", key, units, total)
	}
}

func hashOfText(key []byte) (h uint64) {
	h = 14695981039346656037 // FNV-1a
	for _, c := range key {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return h
}

// TestSketchHoldsTheLargestUnits checks that sums fit 64 bits, also over all shards.
func TestSketchHoldsTheLargestUnits(t *testing.T) {
	n := NewCounter()
	for range 10_000 {
		n.Weigh(0, 1, []byte("k"), rule.MaxUnits, Denied)
	}
	require.Equal(t, []Hitter{{Key: []byte("k"), Units: topMost}}, n.AppendTo(nil, 0, Denied))
}
