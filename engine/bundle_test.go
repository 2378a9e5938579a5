package engine_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/race"
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

// TestABundleIsOneChange checks that the limiters of a policy for a key are stored as one change, which loads all of
// them, and that a change without a value removes all.
func TestABundleIsOneChange(t *testing.T) {
	at := engine.Stamp{NowNs: 1e18}
	from, stored := usedBundles(t, at, 37)
	require.Len(t, stored, 1+37)
	to := metaTable(2)
	loadInto(t, to, at, stored)
	requireUnchanged(t, to)
	requireSameBundles(t, at, from, to, 37)
	require.NoError(t, loadOne(to, at, []byte("mpolicy|p|0|k3"), nil))
	require.NoError(t, loadOne(to, at, []byte("mpolicy|p|0|k3"), nil)) // a second removal has nothing to do
	require.EqualValues(t, 4*36, to.Len(at))
	require.False(t, to.Has(at, []byte("policy|p|0|k3")))
	requireUnchanged(t, to)
}

// TestLimitersLoadInAnyOrder loads limiters one by one, as older versions stored them, in random orders.
func TestLimitersLoadInAnyOrder(t *testing.T) {
	at := engine.Stamp{NowNs: 1e18}
	from, stored := usedBundles(t, at, 37)
	single := oneByOneStored(stored)
	require.Len(t, single, 1+4*37)
	for seed := range uint64(20) {
		to := metaTable(2)
		rand.New(rand.NewPCG(seed, 5)).Shuffle(len(single), func(i, j int) {
			single[i], single[j] = single[j], single[i]
		})
		_, err := to.Load(at, single)
		require.NoError(t, err)
		requireSameBundles(t, at, from, to, 37)
		require.NoError(t, loadOne(to, at, []byte("lpolicy|p|2|k3"), nil))
		require.False(t, to.Has(at, []byte("policy|p|2|k3")))
		require.True(t, to.Has(at, []byte("policy|p|3|k3")))
		require.NotEqual(t, from.StateHash(at), to.StateHash(at))
	}
}

// TestABundleReplacesWhatOlderVersionsStored loads limiters one by one, and then newer changes of them together, some
// under other limits.
func TestABundleReplacesWhatOlderVersionsStored(t *testing.T) {
	at := engine.Stamp{NowNs: 1e18}
	from, stored := usedBundles(t, at, 37)
	older := oneByOneStored(stored)
	newer := fourLimits(100)
	newer.Limits[1].Limit.Max = 200
	newer.Limits[2].Limit = engine.Limit{Algorithm: engine.FixedWindow, Mode: engine.Forever, Max: 200}
	decideAt(from, at, setPolicy("p", newer))
	for i := range 37 {
		decideAt(from, at, check(1, "p", fmt.Sprint("k", i)))
	}
	gone := engine.Op{Code: engine.OpForget, Key: engine.LimiterName("p", 0, []byte("k5"))}
	require.EqualValues(t, 1, decideAt(from, at, gone).Allowed)
	require.NoError(t, from.Drain(50, into(t, stored)))
	for range 2 {
		slices.Reverse(older)
		to := metaTable(2)
		_, err := to.Load(at, older)
		require.NoError(t, err)
		loadInto(t, to, at, stored)
		requireUnchanged(t, to)
		require.Equal(t, from.StateHash(at), to.StateHash(at))
		require.EqualValues(t, 4*37-1, to.Len(at))
		for _, c := range older {
			if c.Key[0] == 'l' {
				require.NoError(t, loadOne(to, at, append([]byte("mpolicy|p|0|"), c.Key[len("lpolicy|p|0|"):]...), nil))
			}
		}
		require.Zero(t, to.Len(at))
	}
}

// TestARemovedBundleIncludesALimiterOfItsOwn removes a bundle when only limiter number 0 was loaded, with an entry of
// its own. The removal spares a limiter number 0 whose algorithm excludes it from bundles.
func TestARemovedBundleIncludesALimiterOfItsOwn(t *testing.T) {
	at, name := engine.Stamp{NowNs: 1e18}, engine.LimiterName("p", 0, []byte("k"))
	for _, limit := range []engine.Limit{
		fourLimits(5).Limits[0].Limit, {Algorithm: engine.SlidingLog, WindowNs: 3600e9, Max: 200},
	} {
		from, to, stored := metaTable(2), metaTable(2), entries{}
		decideAt(from, at, engine.Op{Key: name, Limit: limit, Cost: 1})
		require.NoError(t, from.Drain(50, into(t, stored)))
		require.Contains(t, stored, "l"+string(name))
		loadInto(t, to, at, stored)
		require.NoError(t, loadOne(to, engine.Stamp{}, append([]byte("m"), name...), nil))
		require.Equal(t, limit.Algorithm == engine.SlidingLog, to.Has(at, name))
	}
}

// TestABadBundleIsRefused cuts a stored bundle, extends it, and changes its name and each of its first bytes.
func TestABadBundleIsRefused(t *testing.T) {
	at := engine.Stamp{NowNs: 1e18}
	_, stored := usedBundles(t, at, 1)
	const key = "mpolicy|p|0|k0"
	value := stored[key].values[0]
	refused := func(key string, value []byte) {
		t.Helper()
		err := loadOne(metaTable(1), at, []byte(key), value)
		require.ErrorIs(t, err, engine.ErrStored)
	}
	for cut := range len(value) {
		refused(key, value[:cut])
	}
	refused(key, append(bytes.Clone(value), 0))
	for _, bad := range []string{"mpolicy|p|1|k0", "mpolicy|p|0|", "mpolicy|p", "mk0", "m"} {
		refused(bad, value)
		require.ErrorIs(t, loadOne(metaTable(1), engine.Stamp{}, []byte(bad), nil), engine.ErrStored)
	}
	refused(key+strings.Repeat("x", engine.MaxNameLen), value)
	for at, bad := range map[int][]byte{0: {0, 3, 5, 9, 255}, 1: {8, 255}, 2: {byte(engine.SlidingLog), 15, 255}} {
		for _, b := range bad {
			changed := bytes.Clone(value)
			changed[at] = b
			refused(key, changed)
		}
	}
}

// usedBundles returns a table whose four limits were used by some keys, and what it stores.
func usedBundles(t *testing.T, at engine.Stamp, keys int) (*engine.Table, entries) {
	from, stored := engine.NewTable(engine.Options{TrackChanges: true}), entries{}
	decideAt(from, at, setPolicy("p", fourLimits(100)))
	for i := range 2000 {
		decideAt(from, at, check(1, "p", fmt.Sprint("k", i%keys)))
	}
	require.NoError(t, from.Drain(50, into(t, stored)))
	return from, stored
}

// requireSameBundles requires that loaded limiters are those of another table, and share entries.
func requireSameBundles(t *testing.T, at engine.Stamp, from, to *engine.Table, keys int) {
	require.Equal(t, from.StateHash(at), to.StateHash(at))
	_, bytes := to.Usage()
	require.EqualValues(t, 104, bytes/int64(keys), "loaded limiters must share an entry too")
	for i := range keys {
		op := check(1, "p", fmt.Sprint("k", i))
		op.Dry = true
		require.Equal(t, decideAt(from, at, op), decideAt(to, at, op))
	}
}

// oneByOneStored returns the changes that older versions stored: one for each bucket of a bundle.
func oneByOneStored(stored entries) (single []engine.Change) {
	const stateLen = 16
	for key, of := range stored.inOrder() {
		if key[0] != 'm' {
			single = append(single, engine.Change{Key: key, Value: of.values[0]})
			continue
		}
		rest := of.values[0][1:]
		states := rest[len(rest)-int(of.values[0][0])*stateLen:]
		for ; len(states) > 0; states = states[stateLen:] {
			name := bytes.Replace(key[1:], []byte("|0|"), fmt.Appendf(nil, "|%d|", rest[0]), 1)
			end := 3 // number, kind and mode
			for range 5 {
				_, n := binary.Varint(rest[end:])
				end += n
			}
			value := append(bytes.Clone(rest[1:end]), states[:stateLen]...)
			single, rest = append(single, engine.Change{Key: append([]byte("l"), name...), Value: value}), rest[end:]
		}
	}
	return single
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

// TestChecksFollowMovedLimiters checks two keys at once after a change that moves the limiters of both, because the
// state of one limit becomes longer. The keys have all lengths, so the second may get the place that the first left.
func TestChecksFollowMovedLimiters(t *testing.T) {
	at := engine.Stamp{NowNs: 1e18}
	short, long := bucketOf(1, hourNs, 10), bucketOf(1<<32+1, dayNs, 10)
	policy := func(l engine.Limit) engine.Policy {
		return engine.Policy{Limits: []engine.PolicyLimit{quotaLimit(9), {Limit: l}, {Limit: l}}}
	}
	for i := range 24 * 24 {
		table := engine.NewTable(engine.Options{Shards: 1})
		a, b := fmt.Sprintf("%0*d", 1+i/24, 1), fmt.Sprintf("%0*d", 1+i%24, 2)
		decideAt(table, at, setPolicy("p", policy(short)))
		decideAt(table, at, check(5, "p", a))
		decideAt(table, at, check(1, "p", b))
		decideAt(table, at, setPolicy("p", policy(long)))
		got := decideAt(table, at, check(1, "p", a, "p", b))
		require.EqualValues(t, 3, got.Remaining, "keys of %d and %d bytes", len(a), len(b))
		require.EqualValues(t, 6, usedOf(table, at, "policy|p|0|"+a))
		require.EqualValues(t, 2, usedOf(table, at, "policy|p|0|"+b))
	}
}

// TestALoadedNameThatIsTooLong loads a limiter whose name is longer than any that the table makes.
func TestALoadedNameThatIsTooLong(t *testing.T) {
	at := engine.Stamp{NowNs: 1e18}
	from := engine.NewTable(engine.Options{TrackChanges: true})
	decideAt(from, at, setPolicy("p", fourLimits(5)))
	decideAt(from, at, check(1, "p", "k"))
	stored := entries{}
	require.NoError(t, from.Drain(100, into(t, stored)))
	value := oneByOneStored(stored)[1].Value
	to := engine.NewTable(engine.Options{TrackChanges: true})
	for _, n := range []int{engine.MaxNameLen, engine.MaxNameLen + 1, engine.MaxNameLen + engine.MaxIDLen} {
		name := fmt.Sprintf("policy|p|1|%0*d", n-len("policy|p|1|"), 0)
		if err := loadOne(to, at, []byte("l"+name), value); err != nil {
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
// limits with longer states. Free slots of each size are left. Memory must not grow by more than the longer states and
// the pages that a check may have begun.
func TestBundlesGrowWithinTheBound(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
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
		const growth = 4*4 + 8 // each state of a bundle may grow by four bytes, and a slot is a multiple of eight
		require.LessOrEqual(t, table.MemoryBytes(), before+2*16<<10+growth*int64(keys), "keys of %d bytes", keyLen)
	}
}

// loadOne loads one stored change. Without a value it removes the entry.
func loadOne(to *engine.Table, at engine.Stamp, key, value []byte) error {
	_, err := to.Load(at, []engine.Change{{Key: key, Value: value}})
	return err
}
