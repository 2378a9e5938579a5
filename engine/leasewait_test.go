package engine_test

import (
	"cmp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/race"
)

// TestWaitForManyLeases compares the wait of a denied acquire with a sort of the leases by their ends. The ends are
// close together, far apart, or never come.
func TestWaitForManyLeases(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	for seed := range uint64(200) {
		b, rng := newProbe(), seeded(seed)
		var held []lease
		inAll, holders := int64(0), 1+rng.IntN(150)
		for range holders {
			x := lease{units: 1 + rng.Int64N(5), expiresAtNs: 1e6 * (1 + rng.Int64N(1<<(1+rng.IntN(30))))}
			if rng.IntN(20) == 0 {
				x.expiresAtNs = engine.Never
			}
			held, inAll = append(held, x), inAll+x.units
		}
		full := windowOf(engine.Concurrency, 0, inAll)
		for i, x := range held {
			op := engine.Op{Limit: full, Cost: x.units, TTLNs: x.expiresAtNs, Text: keyOf(i)}
			if x.expiresAtNs == engine.Never {
				op.TTLNs = 0
			}
			require.EqualValues(t, 1, b.do(op).Allowed)
		}
		slices.SortFunc(held, func(x, y lease) int { return cmp.Compare(x.expiresAtNs, y.expiresAtNs) })
		freed := int64(0)
		for _, x := range held {
			for cost := freed + 1; cost <= freed+x.units; cost++ {
				want := x.expiresAtNs / 1e6
				if x.expiresAtNs == engine.Never {
					want = -1
				}
				d := b.do(engine.Op{Limit: full, Cost: cost, Text: []byte("late")})
				require.Equal(t, want, d.RetryMs, "seed %d, %d of %d units", seed, cost, inAll)
			}
			freed += x.units
		}
	}
}
