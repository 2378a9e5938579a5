package bench

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/bench/servers"
)

// exactly returns the percentile of sorted values: the smallest value that the given percentage of values does not
// exceed.
func exactly(sorted []time.Duration, percentile float64) float64 {
	rank := max(1, int(math.Ceil(percentile/100*float64(len(sorted)))))
	return sorted[rank-1].Seconds() * 1e3
}

func TestPercentilesAreThoseOfTheValues(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for name, draw := range map[string]func() time.Duration{
		"evenly":     func() time.Duration { return time.Duration(random.IntN(int(time.Second))) + time.Microsecond },
		"many sizes": func() time.Duration { return time.Duration(math.Exp(random.Float64()*16) * 1e3) },
		"two values": func() time.Duration { return []time.Duration{time.Millisecond, time.Second}[random.IntN(2)] },
	} {
		all := newRecorders()
		var values []time.Duration
		for i := range 20_000 {
			d := draw()
			values = append(values, d)
			all[i%len(all)].record(d, tally{answers: 1})
		}
		slices.Sort(values)
		h, counted := merged(all)
		require.EqualValues(t, len(values), counted.answers)
		got := latencyOf(h)
		for percentile, ms := range map[float64]float64{50: got.P50Ms, 90: got.P90Ms, 99: got.P99Ms,
			99.9: got.P999Ms, 100: got.MaxMs} {
			require.InEpsilon(t, exactly(values, percentile), ms, 0.002, "%s: p%v", name, percentile)
		}
	}
}

func TestAPipelineWeighsAsManyRequestsAsItHas(t *testing.T) {
	h := new(histogram)
	h.record(time.Millisecond, 998)
	h.record(time.Second, 2)
	h.record(time.Hour, 0)
	require.InEpsilon(t, 1, msAt(h, 99.8), 0.002)
	require.InEpsilon(t, 1000, msAt(h, 99.9), 0.002)
	h.record(time.Hour, 1)
	require.InEpsilon(t, float64(servers.ReplyTimeout.Milliseconds()), msAt(h, 100), 0.002,
		"beyond the range is its end")
	h.record(-time.Second, 1)
	require.Positive(t, msAt(h, 0))
}
