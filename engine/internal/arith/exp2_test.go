package arith

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/race"
)

// nearestPower returns the double nearest to 2^y. It uses square roots of 2 with 400 bits.
func nearestPower(y float64) float64 {
	const precision = 400
	whole := math.Floor(y)
	power := new(big.Float).SetPrec(precision).SetInt64(1)
	root := new(big.Float).SetPrec(precision).SetInt64(2)
	for fraction := y - whole; fraction != 0; {
		root = new(big.Float).SetPrec(precision).Sqrt(root)
		if fraction *= 2; fraction >= 1 {
			power.Mul(power, root)
			fraction--
		}
	}
	nearest, _ := power.SetMantExp(power, int(whole)).Float64()
	return nearest
}

// TestExp2IsCorrectlyRounded compares exp2 with another computation of the nearest double.
func TestExp2IsCorrectlyRounded(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	rng := rand.New(rand.NewPCG(1, 2))
	ys := []float64{-1, -0.5, 0, 1, 0.5, 0.964, 1023, 1024, 1e300, 0x1p-53, -0x1p-53, 1 - 0x1p-53,
		63.99999, 1023.9999999999999}
	for range 5000 {
		x := rng.Float64() * float64(uint64(1)<<rng.IntN(10))
		ys = append(ys, x-1, float64(2+rng.IntN(60))-rng.Float64()-1)
	}
	for _, y := range ys {
		want := math.Inf(1)
		if y < 1024 {
			want = nearestPower(y)
		}
		require.Equal(t, want, Exp2(y), "2^%v", y)
	}
}
