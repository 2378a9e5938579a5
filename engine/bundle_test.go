package engine_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
)

// fourLimits is a policy with four buckets, of which the first is the tightest.
func fourLimits(max int64) (p engine.Policy) {
	for i := range int64(4) {
		p.Limits = append(p.Limits, engine.PolicyLimit{Limit: engine.Limit{
			Algorithm: engine.TokenBucket, Rate: engine.Rate{Units: 1, PerNs: 60e9 * (i + 1)}, Max: max + i,
		}})
	}
	return p
}

// TestLimitersOfAPolicyShareAnEntry checks the memory that four limits of one key take.
func TestLimitersOfAPolicyShareAnEntry(t *testing.T) {
	const keys = 1000
	at := engine.Stamp{NowNs: 1e18}
	table := engine.NewTable(engine.Options{})
	decideAt(table, at, setPolicy("p", fourLimits(5)))
	for i := range keys {
		require.EqualValues(t, 4, decideAt(table, at, check(1, "p", fmt.Sprintf("key:%011d", i))).Remaining)
	}
	_, bytes := table.Usage()
	require.EqualValues(t, 112, bytes/keys)
	require.EqualValues(t, 4*keys, table.Len(at))
}

// TestBundlesLoadInAnyOrder stores limiters and loads them in random orders. The tables must have the same state, and
// decide alike.
func TestBundlesLoadInAnyOrder(t *testing.T) {
	at := engine.Stamp{NowNs: 1e18}
	from := engine.NewTable(engine.Options{TrackChanges: true})
	decideAt(from, at, setPolicy("p", fourLimits(100)))
	for i := range 2000 {
		decideAt(from, at, check(1, "p", fmt.Sprint("k", i%37)))
	}
	stored := map[string][]byte{}
	require.NoError(t, from.Drain(50, func(chunk []engine.Change) error {
		for _, c := range chunk {
			stored[string(c.Key)] = append([]byte(nil), c.Value...)
		}
		return nil
	}))
	require.Len(t, stored, 1+4*37)
	keys := make([]string, 0, len(stored))
	for key := range stored {
		keys = append(keys, key)
	}
	for seed := range uint64(20) {
		to := engine.NewTable(engine.Options{TrackChanges: true})
		rand.New(rand.NewPCG(seed, 5)).Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		for _, key := range keys {
			_, err := to.Load(at, []byte(key), stored[key])
			require.NoError(t, err)
		}
		require.Equal(t, from.StateHash(at), to.StateHash(at))
		_, bytes := to.Usage()
		require.EqualValues(t, 104, bytes/37, "loaded limiters must share an entry too")
		for i := range 37 {
			op := check(1, "p", fmt.Sprint("k", i))
			op.Dry = true
			require.Equal(t, decideAt(from, at, op), decideAt(to, at, op))
		}
		require.NoError(t, to.Unload([]byte("lpolicy|p|2|k3")))
		require.False(t, to.Has(at, []byte("policy|p|2|k3")))
		require.True(t, to.Has(at, []byte("policy|p|3|k3")))
		require.NotEqual(t, from.StateHash(at), to.StateHash(at))
	}
}

// TestVictimsNameAllLimitersOfABundle checks that forgetting what Victims names frees the memory that it promised.
func TestVictimsNameAllLimitersOfABundle(t *testing.T) {
	at := engine.Stamp{NowNs: 1e18}
	table := engine.NewTable(engine.Options{Shards: 1})
	decideAt(table, at, setPolicy("p", fourLimits(5)))
	for i := range 100 {
		decideAt(table, at, check(1, "p", fmt.Sprint("k", i)))
	}
	var ops []engine.Op
	_, before := table.Usage()
	promised := table.Victims(at, 1000, 1000, func(key, id []byte) {
		require.Nil(t, id)
		ops = append(ops, engine.Op{Code: engine.OpForget, Key: key})
	})
	require.GreaterOrEqual(t, promised, int64(1000))
	for _, op := range ops {
		require.EqualValues(t, 1, decideAt(table, at, op).Allowed)
	}
	_, after := table.Usage()
	require.Equal(t, before-promised, after)
	for most := 1; most < 20; most++ {
		visited := 0
		table.Victims(at, 1e6, most, func([]byte, []byte) { visited++ })
		require.Equal(t, max(most/4*4, 4), visited, "a bundle is a victim as a whole")
	}
	require.EqualValues(t, 400-len(ops), table.Len(at))
}

// TestALimitOfABundleChanges changes one limit of a policy while its limiters share an entry: to a longer state, to an
// algorithm that has an entry of its own, and back. The other limits keep their units.
func TestALimitOfABundleChanges(t *testing.T) {
	at := engine.Stamp{NowNs: 1e18}
	for changed := range 4 {
		table := engine.NewTable(engine.Options{Shards: 1})
		decideAt(table, at, setPolicy("p", fourLimits(50)))
		for range 10 {
			decideAt(table, at, check(1, "p", "k"))
		}
		for _, l := range []engine.Limit{
			{
				Algorithm: engine.TokenBucket, Rate: engine.Rate{Units: 1, PerNs: engine.MaxWindowNs},
				Max: engine.MaxUnits,
			},
			{Algorithm: engine.SlidingLog, WindowNs: 3600e9, Max: 200},
			{Algorithm: engine.SlidingCounter, WindowNs: 3600e9, Max: 200},
			{Algorithm: engine.FixedWindow, Mode: engine.Forever, Max: 200},
			fourLimits(50).Limits[changed].Limit,
		} {
			p := fourLimits(50)
			p.Limits[changed].Limit = l
			decideAt(table, at, setPolicy("p", p))
			require.EqualValues(t, 1, decideAt(table, at, check(1, "p", "k")).Allowed)
			for i := range 4 {
				info, ok := table.Inspect(at, engine.LimiterName("p", i, []byte("k")))
				require.True(t, ok)
				require.Equal(t, p.Limits[i].Limit, info.Limit)
			}
		}
		for i := range 4 {
			info, _ := table.Inspect(at, engine.LimiterName("p", i, []byte("k")))
			if i != changed {
				require.EqualValues(t, 15, info.Used, "limit %d after limit %d changed", i, changed)
			}
		}
	}
}

// TestAHoldThatEndedIsGivenBackToABundle checks that a check of all limits gives back what ended holds took from them,
// in a pipeline and alone.
func TestAHoldThatEndedIsGivenBackToABundle(t *testing.T) {
	at := engine.Stamp{NowNs: 1e18}
	table := engine.NewTable(engine.Options{Shards: 1})
	decideAt(table, at, setPolicy("p", fourLimits(5)))
	require.EqualValues(t, 4, decideAt(table, at, check(1, "p", "k")).Remaining)
	hold := check(4, "p", "k")
	hold.Code, hold.ID, hold.TTLNs = engine.OpReserve, []byte("h"), 10e9
	require.EqualValues(t, 1, decideAt(table, at, hold).Allowed)
	require.Zero(t, decideAt(table, at, check(1, "p", "k")).Allowed)
	at.NowNs += 10e9
	require.EqualValues(t, 3, decideAt(table, at, check(1, "p", "k")).Remaining)
}

// TestALoadedNameThatIsTooLong loads a limiter whose name is longer than any that the table makes.
func TestALoadedNameThatIsTooLong(t *testing.T) {
	at := engine.Stamp{NowNs: 1e18}
	from := engine.NewTable(engine.Options{TrackChanges: true})
	decideAt(from, at, setPolicy("p", fourLimits(5)))
	decideAt(from, at, check(1, "p", "k"))
	var value []byte
	require.NoError(t, from.Drain(100, func(chunk []engine.Change) error {
		value = append([]byte(nil), chunk[len(chunk)-1].Value...)
		return nil
	}))
	to := engine.NewTable(engine.Options{TrackChanges: true})
	for _, n := range []int{engine.MaxNameLen, engine.MaxNameLen + 1, engine.MaxNameLen + engine.MaxIDLen} {
		name := fmt.Sprintf("policy|p|1|%0*d", n-len("policy|p|1|"), 0)
		if _, err := to.Load(at, []byte("l"+name), value); err != nil {
			continue
		}
		require.True(t, to.Has(at, []byte(name)))
		require.NotZero(t, to.StateHash(at))
		found := 0
		to.Scan(at, 0, 1000, func([]byte, engine.Algorithm) { found++ })
		require.Positive(t, found)
	}
}

// TestBundlesGrowWithinTheBound fills a table that refuses new entries, and then changes the limits of its bundles to
// limits with longer states. Free slots of each size are left. Memory must not grow by more than the pages that a check
// may have begun.
func TestBundlesGrowWithinTheBound(t *testing.T) {
	for _, keyLen := range []int{5, 10, 40} {
		const bound = 4 << 20
		at := engine.Stamp{NowNs: 1e18}
		table := engine.NewTable(engine.Options{Shards: 1, MaxMemoryBytes: bound, WhenFull: engine.Deny})
		long := fourLimits(engine.MaxUnits - 10)
		for i := range long.Limits {
			long.Limits[i].Limit.Rate.PerNs = engine.MaxWindowNs - int64(i)
		}
		decideAt(table, at, setPolicy("q", long))
		decideAt(table, at, check(1, "q", "q"))
		for n := 20; n < 300; n++ {
			op := engine.Op{Key: fmt.Appendf(nil, "%0*d", n, 0), Limit: quotaLimit(5).Limit, Cost: 1}
			decideAt(table, at, op)
			if n%2 == 0 { // the others keep their pages
				decideAt(table, at, engine.Op{Code: engine.OpReset, Key: op.Key})
			}
		}
		decideAt(table, at, setPolicy("p", fourLimits(10)))
		keys := 0
		for decideAt(table, at, check(1, "p", fmt.Sprintf("%0*d", keyLen, keys))).Status == engine.OK {
			keys++
		}
		before := table.MemoryBytes()
		decideAt(table, at, setPolicy("p", long))
		for i := range keys {
			decideAt(table, at, check(1, "p", fmt.Sprintf("%0*d", keyLen, i)))
		}
		require.LessOrEqual(t, table.MemoryBytes(), before+2*16<<10, "keys of %d bytes", keyLen)
	}
}
