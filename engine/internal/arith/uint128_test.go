package arith

import (
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// someWide returns numbers of every length up to bits, and the edge values.
func someWide(rng *rand.Rand, bits int) Uint128 {
	w := Uint128{rng.Uint64(), rng.Uint64()}
	switch rng.IntN(8) {
	case 0:
		w = Uint128{}
	case 1:
		w = Uint128{0, ^uint64(0)}
	case 2:
		w = Uint128{1, 0}
	case 3:
		w = Uint128{^uint64(0), ^uint64(0)}
	}
	n := new(big.Int).Rsh(bigOf(w), uint(128-rng.IntN(bits+1)))
	return Uint128{new(big.Int).Rsh(n, 64).Uint64(), new(big.Int).And(n, new(big.Int).SetUint64(^uint64(0))).Uint64()}
}

func bigOf(w Uint128) *big.Int {
	n := new(big.Int).SetUint64(w.Hi)
	return n.Add(n.Lsh(n, 64), new(big.Int).SetUint64(w.Lo))
}

// TestWide compares every operation on 128-bit numbers with math/big.
func TestWide(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		a, b := someWide(rng, 127), someWide(rng, 127)
		x, y := bigOf(a), bigOf(b)
		require.Zero(t, x.Cmp(bigOf(Uint128{a.Hi, a.Lo})))
		require.Equal(t, x.Cmp(y) < 0, a.Less(b))
		require.Equal(t, x.Sign() == 0, a.isZero())
		require.Equal(t, new(big.Int).Add(x, y).String(), bigOf(a.Add(b)).String())
		p, q := rng.Uint64(), rng.Uint64()
		require.Equal(t, new(big.Int).Mul(bigOf(Uint128{0, p}), bigOf(Uint128{0, q})).String(),
			bigOf(Mul(p, q)).String())
		if x.Cmp(y) >= 0 {
			require.Equal(t, new(big.Int).Sub(x, y).String(), bigOf(a.Sub(b)).String())
			require.Equal(t, a.Sub(b), a.SubFloor(b))
		} else {
			require.Equal(t, Uint128{}, a.SubFloor(b))
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
		down, rest := new(big.Int).QuoRem(bigOf(a), bigOf(Uint128{0, d}), new(big.Int))
		require.Equal(t, rest.Uint64(), a.Mod(d), "%v mod %d", a, d)
		q, tooBig := a.Div(d)
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
		require.Equal(t, want, a.DivUp(d), "%v / %d, up", a, d)
	}
}

// TestWideRounding compares the conversions of a level to time, and the sums of instants, with math/big.
func TestWideRounding(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 100_000 {
		a, b := someWide(rng, 127), someWide(rng, 127)
		units := 1 + rng.Int64N((1<<53))>>rng.IntN(54)
		require.Equal(t, capped(quotientUp(a, units)), a.NsUp(units), "%v / %d", a, units)
		ms := quotientUp(a, units)
		ms.Div(ms.Add(ms, big.NewInt(1e6-1)), big.NewInt(1e6))
		require.Equal(t, capped(ms), a.MsUp(units), "%v / %d", a, units)
		require.Equal(t, capped(new(big.Int).Quo(bigOf(a), big.NewInt(units))), a.Floor(units))
		if a.Less(b) {
			require.Equal(t, a, a.Min(b))
			require.Equal(t, a, b.Min(a))
		}
		at, span := int64(rng.Uint64()>>2), int64(rng.Uint64()>>1)>>rng.IntN(63)
		require.Equal(t, capped(new(big.Int).Add(big.NewInt(at), big.NewInt(span))), AddNs(at, span))
	}
	for ns, ms := range map[int64]int64{0: 0, 1: 1, 1e6 - 1: 1, 1e6: 1, 1e6 + 1: 2, Never - 1: Never/1e6 + 1,
		Never: -1} {
		require.Equal(t, ms, NsToMs(ns), "%d ns", ns)
	}
}

func quotientUp(a Uint128, d int64) *big.Int {
	n := bigOf(a)
	return n.Div(n.Add(n, big.NewInt(d-1)), big.NewInt(d))
}

func capped(n *big.Int) int64 {
	if !n.IsInt64() {
		return Never
	}
	return n.Int64()
}
