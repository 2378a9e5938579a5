package store

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine/internal/arena"
	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/rule"
)

// wheeled is a store of counters with an expiry, and a map for comparison.
type wheeled struct {
	*Store
	expires map[string]int64
}

func newWheeled() *wheeled {
	return &wheeled{newFilled().Store, map[string]int64{}}
}

// set gives a key another expiry, either earlier, as a reset does, or later.
func (w *wheeled) set(key string, expiresNs int64) {
	c := Cell{Hash: w.hashKey([]byte(key)), Key: []byte(key)}
	w.Open(&c)
	w.Ensure(&c, uint8(rule.Counter), StateLens[rule.Counter])
	Counter{ExpiresNs: expiresNs}.Write(c.Entry.State())
	c.Relink = true
	w.Touched(&c)
	w.expires[key] = expiresNs
}

// postpone moves an expiry without telling the wheel, like a take from a limiter.
func (w *wheeled) postpone(key string, byNs int64) {
	c := Cell{Hash: w.hashKey([]byte(key)), Key: []byte(key)}
	w.Open(&c)
	if w.expires[key] < arith.Never-byNs {
		w.expires[key] += byNs
		Counter{ExpiresNs: w.expires[key]}.Write(c.Entry.State())
	}
}

func (w *wheeled) forget(key string) {
	c := Cell{Hash: w.hashKey([]byte(key)), Key: []byte(key)}
	w.Open(&c)
	w.Drop(&c)
	delete(w.expires, key)
}

// check requires that every entry is in the wheel once, in a slot that is due when the entry becomes idle or earlier.
func (w *wheeled) check(t *testing.T) {
	seen := map[string]bool{}
	follow := func(p wheelSlot, head arena.Ref) {
		for r, prev := head, p.mark(); r != 0; {
			e := Entry(w.Slab.At(r))
			require.Equal(t, prev, e.prev())
			require.False(t, seen[string(e.Key())], "an entry must be in the wheel once")
			seen[string(e.Key())] = true
			w.checkPlace(t, p, w.expires[string(e.Key())])
			r, prev = e.next(), r
		}
	}
	follow(neverSlot, w.Wheel.never)
	for level := range wheelLevels {
		for slot, head := range w.Wheel.heads[level] {
			require.Equal(t, head != 0, w.Wheel.inUse[level]>>slot&1 == 1)
			follow(wheelSlot{level, slot}, head)
		}
	}
	require.Len(t, seen, len(w.expires))
	require.EqualValues(t, len(w.expires), w.Keys())
}

func (w *wheeled) checkPlace(t *testing.T, p wheelSlot, expiresNs int64) {
	if p == neverSlot {
		require.Equal(t, arith.Never, expiresNs)
		return
	}
	start := w.Wheel.startTick(p)
	require.LessOrEqual(t, start, max(expiresNs>>tickBits, w.Wheel.tick), "the entry would be found too late")
	require.GreaterOrEqual(t, start+1<<(p.level*digitBits), w.Wheel.tick+1, "the wheel has already passed the entry")
	require.GreaterOrEqual(t, w.Wheel.dueAt(p), w.Wheel.DueNs)
}

// someSpan returns a time of any order of magnitude.
func someSpan(rng *rand.Rand, most int) int64 { return rng.Int64() >> (64 - 1 - rng.IntN(most)) }

// TestWheel links, moves, postpones and drops entries while time moves slowly and jumps. It compares the collected
// entries with a map from key to time.
func TestWheel(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 1))
			w := newWheeled()
			w.NowNs = 1 + someSpan(rng, 61)
			for range 3_000 {
				w.step(rng)
				if rng.IntN(50) == 0 {
					w.check(t)
				}
				if rng.IntN(20) == 0 {
					w.NowNs += someSpan(rng, 56-3*int(seed))
					w.NowNs = min(w.NowNs, 1<<62)
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
		w.set(key, w.NowNs+1+someSpan(rng, 58))
	case roll < 3:
		w.set(key, arith.Never)
	case roll < 4:
		w.set(key, w.NowNs+1)
	case roll < 6:
		w.forget(key)
	default:
		w.postpone(key, someSpan(rng, 50))
	}
}

// collectSome collects at a time not after now. With enough steps, all entries that were idle a tick before that time
// are gone, and no entry that was not idle.
func (w *wheeled) collectSome(t *testing.T, rng *rand.Rand) {
	switch untilNs := w.NowNs - rng.Int64N(5e9); {
	case rng.IntN(3) == 0:
		w.CollectAll(func() {})
		w.compare(t, w.NowNs, w.NowNs)
	case rng.IntN(3) == 0:
		w.collectUntil(untilNs, 1+rng.IntN(3))
		w.compare(t, -1, w.NowNs)
	default:
		w.collectUntil(untilNs, 1_000_000)
		w.compare(t, untilNs>>tickBits<<tickBits-1, untilNs)
		require.Greater(t, w.Wheel.DueNs, untilNs)
	}
	w.check(t)
}

// compare requires that all entries idle by mustNs are gone, and that no entry idle only after mayNs is gone.
func (w *wheeled) compare(t *testing.T, mustNs, mayNs int64) {
	for key, expiresNs := range w.expires {
		_, _, r := w.Index.find(w.hashKey([]byte(key)), &w.Slab, Limiters, []byte(key))
		switch {
		case expiresNs <= mustNs:
			require.Zero(t, r, "%s must be collected", key)
		case expiresNs > mayNs:
			require.NotZero(t, r, "%s must not be collected yet", key)
		}
		if r == 0 {
			delete(w.expires, key)
		}
	}
}
