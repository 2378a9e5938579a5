package leases

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine/internal/arena"
	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/rule"
)

// leased is a set of leases, and a map from each holder to its lease.
type leased struct {
	slab  arena.Slab
	set   Set
	held  map[string]Lease
	nowNs int64
}

// TestLeases takes, renews, releases and sweeps leases with ids of every length, and compares the set with a map.
func TestLeases(t *testing.T) {
	for seed := range uint64(10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 3))
			l := &leased{slab: arena.NewSlab(new(arena.Pages), arena.NewMeter()), held: map[string]Lease{}, nowNs: 1e18}
			for range 1_000 {
				l.step(rng, 1+int(seed)*20)
				l.check(t, rng)
				var stored [StateLen]byte
				l.set.Write(stored[:])
				l.set = Read(stored[:])
			}
			l.set.Clear(&l.slab)
			require.Zero(t, l.slab.UsedBytes())
		})
	}
}

func (l *leased) step(rng *rand.Rand, holders int) {
	n := rng.IntN(holders)
	id := fmt.Appendf(nil, "%0*d", 1+n%rule.MaxHolderLen, n)
	x := Lease{ExpiresNs: l.nowNs + 1 + rng.Int64N(100), Units: 1 + rng.Int64N(9), ID: id}
	if rng.IntN(4) == 0 {
		x.ExpiresNs = arith.Never
	}
	_, at, ok := l.set.Find(&l.slab, id)
	switch roll := rng.IntN(10); {
	case roll == 0:
		l.nowNs += rng.Int64N(30)
		l.set.Sweep(&l.slab, l.nowNs)
		for id, x := range l.held {
			if x.ExpiresNs <= l.nowNs {
				delete(l.held, id)
			}
		}
	case !ok:
		l.set.Add(&l.slab, x)
		l.held[string(id)] = x
	case roll < 5:
		l.set.Renew(&l.slab, at, x.ExpiresNs)
		x.Units = l.held[string(id)].Units
		l.held[string(id)] = x
	default:
		l.set.Remove(&l.slab, at)
		delete(l.held, string(id))
	}
}

func (l *leased) check(t *testing.T, rng *rand.Rand) {
	units, soonestNs, ends := int64(0), arith.Never, []Lease{}
	for id, want := range l.held {
		got, _, ok := l.set.Find(&l.slab, []byte(id))
		require.True(t, ok, id)
		require.Equal(t, want, got)
		units += want.Units
		soonestNs = min(soonestNs, want.ExpiresNs)
		ends = append(ends, want)
	}
	require.EqualValues(t, len(l.held), l.set.Count)
	require.Equal(t, units, l.set.Units)
	if len(ends) == 0 {
		require.Zero(t, l.slab.UsedBytes(), "an empty set must take no memory")
		require.Zero(t, l.set.LastExpiryNs(&l.slab, Place{}))
		return
	}
	require.LessOrEqual(t, l.set.SoonestNs, soonestNs)
	slices.SortFunc(ends, func(a, b Lease) int { return int(min(max(a.ExpiresNs-b.ExpiresNs, -1), 1)) })
	require.Equal(t, ends[len(ends)-1].ExpiresNs, l.set.LastExpiryNs(&l.slab, Place{}))
	wanted := 1 + rng.Int64N(units)
	freed, n := int64(0), -1
	for freed < wanted {
		n++
		freed += ends[n].Units
	}
	require.Equal(t, ends[n].ExpiresNs, l.set.FreeAtNs(&l.slab, wanted))
}
