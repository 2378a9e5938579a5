package engine_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/race"
)

// hitTimes is what limits and async-ratelimiter keep in Redis, newest first.
type hitTimes struct {
	times     []float64
	expiresMs int64
}

func (h *hitTimes) moving(limiterMs int64, now float64, limit, windowS, amount int) int64 {
	if i := limit - amount; i < 0 || i < len(h.times) && h.times[i] >= now-float64(windowS) {
		return 0
	}
	h.times = append(slices.Repeat([]float64{now}, amount), h.times...)
	h.times, h.expiresMs = h.times[:min(len(h.times), limit)], limiterMs+int64(windowS)*1000
	return 1
}

func (h *hitTimes) async(limiterMs int64, nowMs, windowMs float64, limit int) [3]int64 {
	h.times = slices.DeleteFunc(h.times, func(at float64) bool { return at <= nowMs-windowMs })
	oldest := nowMs
	if n := len(h.times); n > 0 {
		oldest = h.times[n-1]
	}
	left := max(limit-len(h.times), 0)
	if left > 0 {
		h.expiresMs = limiterMs + int64(windowMs)
		if !slices.Contains(h.times, nowMs) {
			h.times = append(h.times, nowMs)
			slices.SortFunc(h.times, func(a, b float64) int { return cmp.Compare(b, a) })
		}
	}
	return [3]int64{int64(left), int64((oldest + windowMs) / 1000), int64(limit)}
}

// TestTimesOfHits checks that clients with different clocks get the answers of a list and of a set, on all replicas,
// and that no key keeps more hits than its limit.
func TestTimesOfHits(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	for seed := range uint64(16) {
		rng := rand.New(rand.NewPCG(seed, 9))
		replicas, keys := replicasOf(t, seed), map[string]*hitTimes{}
		at := engine.Stamp{NowNs: 1_800_000_000e9}
		limit := 1 + rng.IntN(1+rng.IntN(400))
		for range 600 {
			at.NowNs += rng.Int64N(1 + rng.Int64N(60e6))
			limiterMs := at.NowNs / 1e6
			skew := skews[seed%uint64(len(skews))]
			nowMs := float64(limiterMs+rng.Int64N(2*skew)-skew) + float64(rng.IntN(4))/4
			key, windowS, amount := fmt.Sprint("k", rng.IntN(2)), 1+rng.IntN(5), 1+rng.IntN(limit)
			isSet := seed%2 == 1
			if keys[key] == nil || keys[key].expiresMs < limiterMs {
				keys[key] = &hitTimes{}
			}
			h, op, want := keys[key], engine.Op{}, [3]int64{}
			if isSet {
				op = runScript(engine.AsyncTake, key, nowMs, float64(windowS)*1000, float64(limit))
				want = h.async(limiterMs, nowMs, float64(windowS)*1000, limit)
			} else {
				op = runScript(engine.MovingTake, key, nowMs/1000, float64(limit), float64(windowS), float64(amount))
				want[0] = h.moving(limiterMs, nowMs/1000, limit, windowS, amount)
			}
			require.True(t, op.Script.Valid())
			hash := uint64(0)
			for _, r := range replicas {
				var out [1]engine.Decision
				r.decide(r, block{at, []engine.Op{op}}, out[:])
				words := out[0].ScriptAnswer()
				require.Equal(t, want, [3]int64(words[:3]), "seed %d, %s", seed, r.name)
				info, _ := r.table.Inspect(at, []byte(key))
				require.EqualValues(t, len(h.times), info.Used, r.name)
				require.LessOrEqual(t, info.Used, int64(limit))
				require.Equal(t, !isSet && info.Used > 0, info.IsList)
				hash = cmp.Or(hash, r.table.StateHash(at))
				require.Equal(t, hash, r.table.StateHash(at), r.name)
			}
		}
	}
}

// TestMovingWindowsAreRead checks the number of hits and the oldest of them, whatever the order of their times.
func TestMovingWindowsAreRead(t *testing.T) {
	table, at := engine.NewTable(engine.Options{}), engine.Stamp{NowNs: 1_800_000_000e9}
	ask := func(id engine.ScriptID, args ...float64) [4]int64 {
		d := decideOne(table, step{at, runScript(id, "k", args...)})
		return d.ScriptAnswer()
	}
	bits := func(f float64) int64 { return int64(math.Float64bits(f)) }
	require.Equal(t, [4]int64{}, ask(engine.MovingLook, 0, 10))
	require.Equal(t, [4]int64{}, ask(engine.MovingCount, 0, 10))
	for _, now := range []float64{5, 3, 9, 4, 8.5} {
		require.EqualValues(t, 1, ask(engine.MovingTake, now, 100, 60, 1)[0])
	}
	// Newest first, the times are 8.5, 4, 9, 3 and 5.
	require.Equal(t, [4]int64{2, bits(4), bits(8.5)}, ask(engine.MovingCount, 4, 1))
	require.Equal(t, [4]int64{3, bits(4), bits(8.5)}, ask(engine.MovingCount, 4, 9))
	require.Equal(t, [4]int64{3, bits(9)}, ask(engine.MovingLook, 4, 5)) // of 9 and 3
	require.Equal(t, [4]int64{1, bits(8.5)}, ask(engine.MovingLook, 4, 1))
	require.Equal(t, [4]int64{}, ask(engine.MovingLook, 10, 5))
}

// TestHitsAreBounded checks that no script keeps more than MaxHits, and gives all memory back.
func TestHitsAreBounded(t *testing.T) {
	table, at := engine.NewTable(engine.Options{}), engine.Stamp{NowNs: 1_800_000_000e9}
	empty := table.MemoryBytes()
	take := func(now, limit, amount float64) int64 {
		return decideOne(table, step{at, runScript(engine.MovingTake, "k", now, limit, 60, amount)}).Remaining
	}
	require.EqualValues(t, 1, take(1, engine.MaxHits, engine.MaxHits))
	require.EqualValues(t, 0, take(1, engine.MaxHits, 1))
	require.EqualValues(t, 1, take(100, 1<<53, 1))
	require.EqualValues(t, 0, take(200, 1<<53, engine.MaxHits+1))
	info, _ := table.Inspect(at, []byte("k"))
	require.EqualValues(t, engine.MaxHits, info.Used)
	require.Less(t, info.Bytes, engine.MaxHits*9)
	decideOne(table, step{at, engine.Op{Code: engine.OpReset, Key: []byte("k")}})
	table.Collect(at, 1000)
	require.Less(t, table.MemoryBytes(), empty+64<<10)
}

func runScript(id engine.ScriptID, key string, args ...float64) engine.Op {
	op := engine.Op{Code: engine.OpScript, Key: []byte(key), Script: &engine.Script{ID: id}}
	copy(op.Script.Args[:], args)
	return op
}
