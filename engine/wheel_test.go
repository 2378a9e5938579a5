package engine

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine/internal/arena"
)

// wheeled is a shard whose entries are counters with an expiry, beside a map.
type wheeled struct {
	*shard
	table   *Table
	expires map[string]int64
}

func newWheeled() *wheeled {
	t := NewTable(Options{Shards: 1})
	return &wheeled{&t.shards[0], t, map[string]int64{}}
}

// set gives a key another expiry: nearer, as a reset does, or later.
func (w *wheeled) set(key string, expiresNs int64) {
	c := cell{hash: w.t.hashKey([]byte(key)), key: []byte(key)}
	w.open(&c)
	w.ensure(&c, uint8(Counter), stateLens[Counter])
	le.PutUint64(c.e.state()[8:], uint64(expiresNs))
	c.relink = true
	w.touched(&c)
	w.expires[key] = expiresNs
}

// postpone moves an expiry without telling the wheel, as taking from a limiter does.
func (w *wheeled) postpone(key string, byNs int64) {
	c := cell{hash: w.t.hashKey([]byte(key)), key: []byte(key)}
	w.open(&c)
	if w.expires[key] < Never-byNs {
		w.expires[key] += byNs
		le.PutUint64(c.e.state()[8:], uint64(w.expires[key]))
	}
}

func (w *wheeled) forget(key string) {
	c := cell{hash: w.t.hashKey([]byte(key)), key: []byte(key)}
	w.open(&c)
	w.drop(&c)
	delete(w.expires, key)
}

// check: every entry stands in the wheel once, where it will be found in time.
func (w *wheeled) check(t *testing.T) {
	seen := map[string]bool{}
	follow := func(p wheelSlot, head arena.Ref) {
		for r, prev := head, p.mark(); r != 0; {
			e := entry(w.slab.At(r))
			require.Equal(t, prev, e.prev())
			require.False(t, seen[string(e.key())], "an entry stands twice")
			seen[string(e.key())] = true
			w.checkPlace(t, p, w.expires[string(e.key())])
			r, prev = e.next(), r
		}
	}
	follow(neverSlot, w.wheel.never)
	for level := range wheelLevels {
		for slot, head := range w.wheel.heads[level] {
			require.Equal(t, head != 0, w.wheel.inUse[level]>>slot&1 == 1)
			follow(wheelSlot{level, slot}, head)
		}
	}
	require.Len(t, seen, len(w.expires))
	require.EqualValues(t, len(w.expires), w.keys())
}

func (w *wheeled) checkPlace(t *testing.T, p wheelSlot, expiresNs int64) {
	if p == neverSlot {
		require.Equal(t, Never, expiresNs)
		return
	}
	start := w.wheel.startTick(p)
	require.LessOrEqual(t, start, max(expiresNs>>tickBits, w.wheel.tick), "it is found too late")
	require.GreaterOrEqual(t, start+1<<(p.level*digitBits), w.wheel.tick+1, "the wheel has passed it")
	require.GreaterOrEqual(t, w.wheel.dueAt(p), w.wheel.dueNs)
}

// someSpan is a time of any order of magnitude.
func someSpan(rng *rand.Rand, most int) int64 { return rng.Int64() >> (64 - 1 - rng.IntN(most)) }

// TestWheel links, moves, postpones and forgets entries while time creeps and
// jumps, and compares what is collected with a map from key to time.
func TestWheel(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 1))
			w := newWheeled()
			w.nowNs = 1 + someSpan(rng, 61)
			for range 3_000 {
				w.step(rng)
				if rng.IntN(50) == 0 {
					w.check(t)
				}
				if rng.IntN(20) == 0 {
					w.nowNs += someSpan(rng, 56-3*int(seed))
					w.nowNs = min(w.nowNs, 1<<62)
					w.collectSome(t, rng)
				}
			}
		})
	}
}

// step changes one entry.
func (w *wheeled) step(rng *rand.Rand) {
	key := fmt.Sprint(rng.IntN(300))
	_, there := w.expires[key]
	switch roll := rng.IntN(10); {
	case !there || roll < 2:
		w.set(key, w.nowNs+1+someSpan(rng, 58))
	case roll < 3:
		w.set(key, Never)
	case roll < 4:
		w.set(key, w.nowNs+1)
	case roll < 6:
		w.forget(key)
	default:
		w.postpone(key, someSpan(rng, 50))
	}
}

// collectSome collects up to some time not after now: with enough steps, whatever
// was idle a tick before is gone, and never anything that is not idle.
func (w *wheeled) collectSome(t *testing.T, rng *rand.Rand) {
	switch untilNs := w.nowNs - rng.Int64N(5e9); {
	case rng.IntN(3) == 0:
		w.collectAll(func() {})
		w.compare(t, w.nowNs, w.nowNs)
	case rng.IntN(3) == 0:
		w.collectUntil(untilNs, 1+rng.IntN(3))
		w.compare(t, -1, w.nowNs)
	default:
		w.collectUntil(untilNs, 1_000_000)
		w.compare(t, untilNs>>tickBits<<tickBits-1, untilNs)
		require.Greater(t, w.wheel.dueNs, untilNs)
	}
	w.check(t)
}

// compare asks that all that is idle by mustNs is gone, and nothing after mayNs.
func (w *wheeled) compare(t *testing.T, mustNs, mayNs int64) {
	for key, expiresNs := range w.expires {
		_, _, r := w.index.find(w.t.hashKey([]byte(key)), &w.slab, limiters, []byte(key))
		switch {
		case expiresNs <= mustNs:
			require.Zero(t, r, "%s is still there", key)
		case expiresNs > mayNs:
			require.NotZero(t, r, "%s is gone", key)
		}
		if r == 0 {
			delete(w.expires, key)
		}
	}
}
