package engine_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/race"
)

// sortedSet is the sorted set that the script keeps in Redis, in its simplest form.
type sortedSet struct {
	scores    []float64
	expiresMs int64
}

func (z *sortedSet) slide(limiterMs int64, fromMs, nowMs, most, windowMs float64) [3]int64 {
	if limiterMs > z.expiresMs {
		z.scores = nil
	}
	z.scores = slices.DeleteFunc(z.scores, func(at float64) bool { return at <= fromMs })
	count := float64(len(z.scores))
	if count < most {
		z.scores, z.expiresMs = append(z.scores, nowMs), limiterMs+int64(windowMs)
		slices.Sort(z.scores)
		return [3]int64{1, int64(most - count - 1), 0}
	}
	return [3]int64{0, 0, int64(z.scores[0] + windowMs - nowMs)}
}

// skews are how far a client's clock may be wrong in ms: not at all, a little, and more than a window.
var skews = []int64{1, 5, 300, 20_000}

// TestSlidingSet checks that clients with different clocks get the answers of a sorted set, on all replicas. The
// state must report the length of the set.
func TestSlidingSet(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	for seed := range uint64(24) {
		rng := rand.New(rand.NewPCG(seed, 3))
		replicas, sets := replicasOf(t, seed), map[string]*sortedSet{}
		at := engine.Stamp{NowNs: 1_800_000_000e9}
		skewMs := skews[seed%uint64(len(skews))]
		longest := 1 + rng.IntN(600)
		for range 1000 {
			at.NowNs += rng.Int64N(1 + rng.Int64N(30e6))
			if rng.IntN(200) == 0 {
				at.NowNs += rng.Int64N(4e9)
			}
			key := fmt.Sprint("k", rng.IntN(2))
			nowMs := float64(at.NowNs/1e6 + rng.Int64N(2*skewMs) - skewMs)
			most, windowMs := float64(1+rng.IntN(longest)), float64(1+rng.IntN(8000))
			fromMs := nowMs - windowMs + float64(rng.IntN(3))/2
			op := slidingSet(key, fromMs, nowMs, most, windowMs)
			if sets[key] == nil {
				sets[key] = &sortedSet{expiresMs: -1}
			}
			want, hash := sets[key].slide(at.NowNs/1e6, fromMs, nowMs, most, windowMs), uint64(0)
			for _, r := range replicas {
				var out [1]engine.Decision
				r.decide(r, block{at, []engine.Op{op}}, out[:])
				words := out[0].ScriptAnswer()
				require.Equal(t, want, [3]int64(words[:3]), "seed %d, %s", seed, r.name)
				info, _ := r.table.Inspect(at, []byte(key))
				require.EqualValues(t, len(sets[key].scores), info.Used, r.name)
				hash = cmp.Or(hash, r.table.StateHash(at))
				require.Equal(t, hash, r.table.StateHash(at), r.name)
			}
		}
	}
}

func slidingSet(key string, args ...float64) engine.Op {
	op := engine.Op{Code: engine.OpScript, Key: []byte(key), Script: &engine.Script{ID: engine.SlidingSet}}
	copy(op.Script.Args[:], args)
	return op
}

// TestSlidingSetGivesItsMemoryBack checks that no memory of a log remains, however it ends.
func TestSlidingSetGivesItsMemoryBack(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	table := engine.NewTable(engine.Options{})
	at := engine.Stamp{NowNs: 1_800_000_000e9}
	fill := func() {
		rng := rand.New(rand.NewPCG(1, 1))
		for range 5000 {
			nowMs := float64(at.NowNs/1e6 + rng.Int64N(10_000))
			require.EqualValues(t, 1, decideOne(table, step{at, slidingSet("k", 0, nowMs, 5000, 10_000)}).Allowed)
		}
		info, _ := table.Inspect(at, []byte("k"))
		require.Greater(t, info.Bytes, 5000)
		require.Less(t, info.Bytes, 4*5000, "5000 requests in any order must take few bytes")
	}
	empty := table.MemoryBytes()
	for name, end := range map[string]func(){
		"deleted": func() { decideOne(table, step{at, engine.Op{Code: engine.OpReset, Key: []byte("k")}}) },
		"expired": func() { at.NowNs += 20e9; table.Len(at) },
		"emptied by a later window": func() {
			require.EqualValues(t, 1, decideOne(table,
				step{at, slidingSet("k", float64(at.NowNs/1e6)+10_000, float64(at.NowNs/1e6)+20_000, 1, 1000)}).Allowed)
			at.NowNs += 20e9
			table.Len(at)
		},
	} {
		fill()
		end()
		_, found := table.Inspect(at, []byte("k"))
		require.False(t, found, name)
		table.Collect(at, 1000)
		require.Less(t, table.MemoryBytes(), empty+64<<10, name)
	}
}

// TestSlidingSetBounds checks that a request which the log cannot hold is refused.
func TestSlidingSetBounds(t *testing.T) {
	for _, c := range []struct {
		args  [4]float64
		sound bool
	}{
		{[4]float64{0, 0, 1, 1}, true},
		{[4]float64{-1e15, engine.MaxSlidingSetMs, engine.MaxLogUnits, 1 << 53}, true},
		{[4]float64{0, -1, 1, 1}, false},
		{[4]float64{0, engine.MaxSlidingSetMs + 1, 1, 1}, false},
		{[4]float64{0, 0.5, 1, 1}, false},
		{[4]float64{0, 0, 0, 1}, false},
		{[4]float64{0, 0, 1.5, 1}, false},
		{[4]float64{0, 0, engine.MaxLogUnits + 1, 1}, false},
		{[4]float64{0, 0, 1, 0}, false},
	} {
		op := slidingSet("k", c.args[:]...)
		require.Equal(t, c.sound, op.Script.Valid(), "%v", c.args)
	}
}
