package bench

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMedianRank(t *testing.T) {
	for _, c := range []struct {
		n    int
		risk float64
		want int
	}{
		{0, 0.05, 0}, {1, 0.05, 0},
		{5, 0.05, 0}, // 2/32
		{6, 0.05, 1}, // 2/64
		{9, 0.05, 2}, // 20/512
		{10, 0.05, 2}, {20, 0.05, 6},
		{16, GuardRisk / 9, 3}, // 274/65536
	} {
		require.Equal(t, c.want, medianRank(c.n, c.risk), c)
	}
	_, _, ok := medianInterval([]float64{1, 2, 3, 4, 5}, 0.05)
	require.False(t, ok)
	low, high, ok := medianInterval([]float64{9, 1, 8, 2, 7, 3, 6, 4, 5}, 0.05)
	require.True(t, ok)
	require.Equal(t, []float64{2, 8}, []float64{low, high})
}

// pairsOf returns pairs whose machine changes its speed from pair to pair by up to 30 %, and whose programs differ by a
// factor and by a noise.
func pairsOf(figure Figure, n int, factor, noise float64, random *rand.Rand) *Paired {
	p := &Paired{Figure: figure}
	for range n {
		speed := 1000 * (1 + 0.3*random.Float64())
		p.Base = append(p.Base, speed*math.Exp(noise*random.NormFloat64()))
		p.This = append(p.This, factor*speed*math.Exp(noise*random.NormFloat64()))
	}
	return p
}

func TestPairsTellAChangeFromNoise(t *testing.T) {
	const risk = GuardRisk / 9
	for _, c := range []struct {
		name          string
		figure        Figure
		factor, noise float64
		want          Verdict
	}{
		{"7 % faster, less than the machine's changes", Rate, 1.07, 0.01, Better},
		{"7 % slower", Rate, 0.93, 0.01, Worse},
		{"less processor time", CPU, 0.9, 0.01, Better},
		{"a longer tail", P99, 1.3, 0.05, Worse},
		{"equal", Rate, 1, 0.01, Same},
		{"equal, and much noise", P99, 1, 0.3, Same},
		{"a change below the least one", Rate, 1.01, 0.001, Same},
		{"a change below the noise", Rate, 1.04, 0.15, Same},
	} {
		p := pairsOf(c.figure, DefaultPairs, c.factor, c.noise, rand.New(rand.NewPCG(1, 2)))
		p.judge(risk)
		require.Equal(t, c.want, p.Verdict, "%s: %v (%v to %v)", c.name, p.Ratio, p.Low, p.High)
	}
}

func TestAFewDisturbedPairsChangeNoVerdict(t *testing.T) {
	for disturbed, want := range map[int]Verdict{0: Better, 2: Better, 3: Same} {
		p := pairsOf(Rate, DefaultPairs, 1.1, 0.01, rand.New(rand.NewPCG(1, 2)))
		for i := range disturbed {
			p.This[i] /= 2
		}
		p.judge(GuardRisk / 9)
		require.Equal(t, want, p.Verdict, disturbed)
	}
}

// TestEqualProgramsRarelyDiffer counts wrong verdicts over many made-up runs. The noise is far above leastChange, so
// that only the interval prevents them.
func TestEqualProgramsRarelyDiffer(t *testing.T) {
	const runs, risk = 4000, 0.05
	random, wrong := rand.New(rand.NewPCG(3, 4)), 0
	for range runs {
		p := pairsOf(Rate, DefaultPairs, 1, 0.5, random)
		if p.judge(risk); p.Verdict != Same {
			wrong++
		}
	}
	require.Less(t, float64(wrong)/runs, risk)
	require.Positive(t, wrong, "an interval that is too wide finds nothing")
}

func TestTooFewPairsAreUnknown(t *testing.T) {
	p := pairsOf(Rate, 5, 2, 0, rand.New(rand.NewPCG(1, 2)))
	p.judge(0.05)
	require.Equal(t, Unknown, p.Verdict)
}
