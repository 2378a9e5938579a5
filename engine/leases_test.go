package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// leased is a set of leases beside a map from the holder to the lease.
type leased struct {
	slab  slab
	set   leaseSet
	held  map[string]lease
	nowNs int64
}

// TestLeases takes, renews, releases and sweeps leases with ids of every length,
// and compares the set with a map.
func TestLeases(t *testing.T) {
	for seed := range uint64(10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 3))
			l := &leased{slab: newSlab(newMeter()), held: map[string]lease{}, nowNs: 1e18}
			for range 1_000 {
				l.step(rng, 1+int(seed)*20)
				l.check(t, rng)
				var stored [leasesLen]byte
				l.set.write(stored[:])
				l.set = readLeases(stored[:])
			}
			l.set.clear(&l.slab)
			require.Zero(t, l.slab.slots())
		})
	}
}

func (l *leased) step(rng *rand.Rand, holders int) {
	n := rng.IntN(holders)
	id := fmt.Appendf(nil, "%0*d", 1+n%MaxHolderLen, n)
	x := lease{expiresNs: l.nowNs + 1 + rng.Int64N(100), units: 1 + rng.Int64N(9), id: id}
	if rng.IntN(4) == 0 {
		x.expiresNs = Never
	}
	_, at, ok := l.set.find(&l.slab, id)
	switch roll := rng.IntN(10); {
	case roll == 0:
		l.nowNs += rng.Int64N(30)
		l.set.sweep(&l.slab, l.nowNs)
		for id, x := range l.held {
			if x.expiresNs <= l.nowNs {
				delete(l.held, id)
			}
		}
	case !ok:
		l.set.add(&l.slab, x)
		l.held[string(id)] = x
	case roll < 5:
		l.set.renew(&l.slab, at, x.expiresNs)
		x.units = l.held[string(id)].units
		l.held[string(id)] = x
	default:
		l.set.remove(&l.slab, at)
		delete(l.held, string(id))
	}
}

func (l *leased) check(t *testing.T, rng *rand.Rand) {
	units, soonestNs, ends := int64(0), Never, []lease{}
	for id, want := range l.held {
		got, _, ok := l.set.find(&l.slab, []byte(id))
		require.True(t, ok, id)
		require.Equal(t, want, got)
		units += want.units
		soonestNs = min(soonestNs, want.expiresNs)
		ends = append(ends, want)
	}
	require.EqualValues(t, len(l.held), l.set.count)
	require.Equal(t, units, l.set.units)
	if len(ends) == 0 {
		require.Zero(t, l.slab.slots(), "an empty set holds nothing")
		require.Zero(t, l.set.lastExpiryNs(&l.slab, leasePlace{}))
		return
	}
	require.LessOrEqual(t, l.set.soonestNs, soonestNs)
	slices.SortFunc(ends, func(a, b lease) int { return int(min(max(a.expiresNs-b.expiresNs, -1), 1)) })
	require.Equal(t, ends[len(ends)-1].expiresNs, l.set.lastExpiryNs(&l.slab, leasePlace{}))
	wanted := 1 + rng.Int64N(units)
	freed, n := int64(0), -1
	for freed < wanted {
		n++
		freed += ends[n].units
	}
	require.Equal(t, ends[n].expiresNs, l.set.freeAtNs(&l.slab, wanted))
}
