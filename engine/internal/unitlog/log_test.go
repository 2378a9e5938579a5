package unitlog

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine/internal/arena"
)

// logged is a log, and a slice with the time of every unit.
type logged struct {
	slab arena.Slab
	log  Log
	at   []int64
}

func (l *logged) append(atNs, units int64) {
	l.log.Append(&l.slab, atNs, units)
	for range units {
		l.at = append(l.at, atNs)
	}
}

// until returns the number of units that are not after a time.
func (l *logged) until(ns int64) (n int) {
	for n < len(l.at) && l.at[n] <= ns {
		n++
	}
	return n
}

func (l *logged) check(t *testing.T, rng *rand.Rand) {
	require.EqualValues(t, len(l.at), l.log.Units)
	var at []int64
	for r := range l.log.All(&l.slab) {
		for range r.Units {
			at = append(at, r.AtNs)
		}
	}
	require.True(t, slices.Equal(l.at, at))
	i := len(at)
	if i == 0 {
		require.Zero(t, l.slab.UsedBytes(), "an empty log must take no memory")
		return
	}
	require.Equal(t, l.at[i-1], l.log.LastNs)
	for range 5 {
		n := rng.IntN(i)
		require.Equal(t, l.at[n], l.log.TimeOf(&l.slab, int64(n)+1))
		ns := l.at[n] + rng.Int64N(3) - 1
		require.EqualValues(t, l.until(ns), l.log.UnitsUntil(&l.slab, ns))
	}
}

// TestLog appends to a log, cuts it at both ends, and compares it with a slice.
func TestLog(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 2))
			l := &logged{slab: arena.NewSlab(new(arena.Pages), arena.NewMeter())}
			nowNs := 1 + someSpan(rng, 60)
			for range 1_000 {
				l.step(rng, &nowNs, int(seed))
				l.check(t, rng)
				// The bytes in an entry are the whole state of a log.
				var stored [StateLen]byte
				l.log.Write(stored[:])
				l.log = Read(stored[:])
			}
			l.log.Clear(&l.slab)
			require.Zero(t, l.slab.UsedBytes())
		})
	}
}

func (l *logged) step(rng *rand.Rand, nowNs *int64, seed int) {
	have := len(l.at)
	switch roll := rng.IntN(100); {
	case roll < 80 || have == 0:
		*nowNs += someSpan(rng, 8+2*seed)
		units := int64(1)
		if rng.IntN(3) == 0 {
			units += someSpan(rng, 10)
		}
		l.append(*nowNs, units)
	case roll < 88:
		untilNs := l.at[rng.IntN(min(have, 40))] + rng.Int64N(3) - 1
		l.log.DropUntil(&l.slab, untilNs)
		l.at = l.at[l.until(untilNs):]
	case roll < 94:
		n := rng.IntN(min(have, 300))
		l.log.DropOldest(&l.slab, int64(n))
		l.at = l.at[n:]
	case roll < 99:
		n := have - rng.IntN(min(have, 300))
		l.log.KeepFirst(&l.slab, int64(n))
		l.at = l.at[:n]
	default:
		n := rng.IntN(have + 1)
		l.log.KeepFirst(&l.slab, int64(n))
		l.at = l.at[:n]
	}
}

// someSpan returns a time of any order of magnitude.
func someSpan(rng *rand.Rand, most int) int64 { return rng.Int64() >> (64 - 1 - rng.IntN(most)) }
