package engine

import (
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// someWide returns numbers of every length up to bits, and the edges.
func someWide(rng *rand.Rand, bits int) wide {
	w := wide{rng.Uint64(), rng.Uint64()}
	switch rng.IntN(8) {
	case 0:
		w = wide{}
	case 1:
		w = wide{0, ^uint64(0)}
	case 2:
		w = wide{1, 0}
	case 3:
		w = wide{^uint64(0), ^uint64(0)}
	}
	n := new(big.Int).Rsh(bigOf(w), uint(128-rng.IntN(bits+1)))
	return wide{new(big.Int).Rsh(n, 64).Uint64(), new(big.Int).And(n, new(big.Int).SetUint64(^uint64(0))).Uint64()}
}

func bigOf(w wide) *big.Int {
	n := new(big.Int).SetUint64(w.hi)
	return n.Add(n.Lsh(n, 64), new(big.Int).SetUint64(w.lo))
}

// TestWide compares every operation of wide with math/big.
func TestWide(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		a, b := someWide(rng, 127), someWide(rng, 127)
		x, y := bigOf(a), bigOf(b)
		require.Zero(t, x.Cmp(bigOf(wide{a.hi, a.lo})))
		require.Equal(t, x.Cmp(y) < 0, a.less(b))
		require.Equal(t, x.Sign() == 0, a.isZero())
		require.Equal(t, new(big.Int).Add(x, y).String(), bigOf(a.add(b)).String())
		p, q := rng.Uint64(), rng.Uint64()
		require.Equal(t, new(big.Int).Mul(bigOf(wide{0, p}), bigOf(wide{0, q})).String(), bigOf(wideMul(p, q)).String())
		if x.Cmp(y) >= 0 {
			require.Equal(t, new(big.Int).Sub(x, y).String(), bigOf(a.sub(b)).String())
			require.Equal(t, a.sub(b), a.subFloor(b))
		} else {
			require.Equal(t, wide{}, a.subFloor(b))
		}
	}
}

// TestWideDivision compares the three divisions with math/big, saturation included.
func TestWideDivision(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 100_000 {
		a := someWide(rng, 127)
		d := rng.Uint64()>>rng.IntN(64) | 1
		if rng.IntN(4) == 0 {
			d = 1 << rng.IntN(63)
		}
		down, rest := new(big.Int).QuoRem(bigOf(a), bigOf(wide{0, d}), new(big.Int))
		require.Equal(t, rest.Uint64(), a.mod(d), "%v mod %d", a, d)
		q, tooBig := a.div(d)
		require.Equal(t, !down.IsUint64(), tooBig, "%v / %d", a, d)
		if tooBig {
			require.Equal(t, ^uint64(0), q)
		} else {
			require.Equal(t, down.Uint64(), q)
		}
		up := down
		if rest.Sign() > 0 {
			up = new(big.Int).Add(down, big.NewInt(1))
		}
		want := Never
		if up.IsInt64() {
			want = up.Int64()
		}
		require.Equal(t, want, a.divUp(d), "%v / %d, up", a, d)
	}
}

// TestWideRounding compares the readings of a level as time, and the sums of
// instants, with math/big.
func TestWideRounding(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 100_000 {
		a, b := someWide(rng, 127), someWide(rng, 127)
		units := 1 + rng.Int64N(MaxUnits)>>rng.IntN(54)
		require.Equal(t, capped(quotientUp(a, units)), a.nsUp(units), "%v / %d", a, units)
		ms := quotientUp(a, units)
		ms.Div(ms.Add(ms, big.NewInt(1e6-1)), big.NewInt(1e6))
		require.Equal(t, capped(ms), a.msUp(units), "%v / %d", a, units)
		require.Equal(t, capped(new(big.Int).Quo(bigOf(a), big.NewInt(units))), a.floor(units))
		if a.less(b) {
			require.Equal(t, a, a.min(b))
			require.Equal(t, a, b.min(a))
		}
		at, span := int64(rng.Uint64()>>2), int64(rng.Uint64()>>1)>>rng.IntN(63)
		require.Equal(t, capped(new(big.Int).Add(big.NewInt(at), big.NewInt(span))), addNs(at, span))
	}
	for ns, ms := range map[int64]int64{0: 0, 1: 1, 1e6 - 1: 1, 1e6: 1, 1e6 + 1: 2, Never - 1: Never/1e6 + 1, Never: -1} {
		require.Equal(t, ms, nsToMs(ns), "%d ns", ns)
	}
}

func quotientUp(a wide, d int64) *big.Int {
	n := bigOf(a)
	return n.Div(n.Add(n, big.NewInt(d-1)), big.NewInt(d))
}

func capped(n *big.Int) int64 {
	if !n.IsInt64() {
		return Never
	}
	return n.Int64()
}
