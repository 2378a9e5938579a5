package engine

import (
	"bytes"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine/internal/arena"
	"github.com/weir-project/weir/engine/internal/store"
)

// mostBits returns the length in bits of the largest state that a bucket can have: with the latest time and the largest
// deficit.
func mostBits(l *Limit) int {
	n := func(i int64) *big.Int { return big.NewInt(i) }
	missing := n(MaxUnits + l.Max)
	if l.Algorithm == LeakyBucket {
		missing = n(2*MaxUnits + 1)
	}
	missing.Mul(missing, n(l.Rate.PerNs))
	time := new(big.Int).Mul(new(big.Int).Lsh(n(1), 62), n(l.Rate.Units))
	return time.Add(time, missing).BitLen()
}

// around returns numbers near powers of two, up to the most.
func around(most int64) []int64 {
	list := []int64{1, most}
	for n := int64(2); n < most; n *= 2 {
		list = append(list, n-1, n, n+1)
	}
	return list
}

// TestBucketLen checks that a state is as long as its limit may need, and short under usual limits.
func TestBucketLen(t *testing.T) {
	for _, usual := range []string{"1/s", "1000/s", "1000000000/s", "10/m", "1/h", "100/d", "5000000/d"} {
		rate, err := ParseRate([]byte(usual))
		require.NoError(t, err)
		l := Limit{Algorithm: TokenBucket, Rate: rate, Max: 1e6}
		require.Equal(t, store.ShortBucketLen, store.BucketLen(&l), usual)
	}
	require.Equal(t, store.LongBucketLen,
		store.BucketLen(&Limit{Algorithm: TokenBucket, Rate: Rate{Units: 1, PerNs: MaxWindowNs}, Max: 1}))
	for _, a := range []Algorithm{TokenBucket, LeakyBucket} {
		for _, units := range around(MaxUnits) {
			for _, perNs := range around(MaxWindowNs) {
				for _, max := range []int64{1, MaxUnits} {
					l := Limit{Algorithm: a, Rate: Rate{Units: units, PerNs: perNs}, Max: max}
					require.True(t, store.BucketLen(&l) == store.LongBucketLen ||
						mostBits(&l) <= 8*store.ShortBucketLen, "%v", l)
				}
			}
		}
	}
}

// TestEntryLen checks the size of usual entries, and that no two kinds of entries share a mark.
func TestEntryLen(t *testing.T) {
	require.Equal(t, 40, store.EntryLen(len("user:0123456789"), store.ShortBucketLen))
	require.GreaterOrEqual(t, store.EntryLen(1, store.BlockLen), 8*arena.WordsPerDirtyBit)
	require.LessOrEqual(t, 2+MaxNameLen+MaxIDLen, store.MaxEntryKey, "no key may be longer than the name of a token")
}

// TestStateGrowsWithItsLimit checks that a key gets a longer entry under a limit that needs it, and a shorter one
// again. Used units must stay used.
func TestStateGrowsWithItsLimit(t *testing.T) {
	table, at := NewTable(Options{Shards: 1, TrackChanges: true}), Stamp{NowNs: 1e18}
	short := Limit{Algorithm: TokenBucket, Rate: Rate{Units: 1, PerNs: 1e9}, Max: 10}
	long := Limit{Algorithm: TokenBucket, Rate: Rate{Units: 1, PerNs: MaxWindowNs}, Max: 10}
	ask := func(l Limit, cost int64) (d [1]Decision) {
		table.Decide(at, []Op{{Key: []byte("k"), Limit: l, Cost: cost}}, d[:])
		return d
	}
	require.EqualValues(t, 4, ask(short, 6)[0].Remaining)
	require.EqualValues(t, 3, ask(long, 1)[0].Remaining, "an admission must keep the used units")
	require.EqualValues(t, 2, ask(short, 1)[0].Remaining)
	denied := ask(long, 3)[0]
	require.Zero(t, denied.Allowed)
	require.EqualValues(t, 2, denied.Remaining, "a denial must put its limit in force")
	require.EqualValues(t, 1, table.Len(at))
	copied := NewTable(Options{Shards: 4})
	require.NoError(t, table.Drain(10, func(chunk []Change) error {
		for _, c := range chunk {
			if c.Value == nil {
				continue // the removal of the entry that a longer entry replaced
			}
			if _, err := copied.Load(at, []Change{c}); err != nil {
				return err
			}
		}
		return nil
	}))
	require.Equal(t, table.StateHash(at), copied.StateHash(at))
}

// TestGrowingIsNoRemoval checks that a growing entry is never removed from a store in between. The changes are
// applied one by one.
func TestGrowingIsNoRemoval(t *testing.T) {
	for _, cost := range []int64{1, 9} { // admitted, and denied
		table, at := NewTable(Options{Shards: 1, TrackChanges: true}), Stamp{NowNs: 1e18}
		drained := func() (changes []Change) {
			require.NoError(t, table.Drain(1, func(chunk []Change) error {
				changes = append(changes, Change{Key: bytes.Clone(chunk[0].Key), Value: bytes.Clone(chunk[0].Value)})
				return nil
			}))
			return changes
		}
		ask := func(perNs, cost int64) {
			l := Limit{Algorithm: TokenBucket, Rate: Rate{Units: 1, PerNs: perNs}, Max: 10}
			table.Decide(at, []Op{{Key: []byte("k"), Limit: l, Cost: cost}}, make([]Decision, 1))
		}
		ask(1e9, 6)
		require.Len(t, drained(), 1)
		ask(MaxWindowNs, cost)
		changes := drained()
		require.Len(t, changes, 1)
		require.NotNil(t, changes[0].Value)
		table.Decide(at, []Op{{Code: OpReset, Key: []byte("k")}}, make([]Decision, 1))
		require.Len(t, drained(), 1, "the stored entry must be removed")
	}
}

// TestCarryIsBounded checks that a deficit under one limit is reduced to what the state of another limit can represent.
// No request causes such a deficit. It comes from a load at a time before the time of the stored entry.
func TestCarryIsBounded(t *testing.T) {
	table, at := NewTable(Options{Shards: 1, TrackChanges: true}), Stamp{NowNs: 1e18}
	var d [1]Decision
	fast := Limit{Algorithm: TokenBucket, Rate: Rate{Units: 1<<32 - 1, PerNs: 1}, Max: MaxUnits}
	table.Decide(at, []Op{{Key: []byte("k"), Limit: fast, Cost: MaxUnits}}, d[:])
	copied := NewTable(Options{})
	before := Stamp{NowNs: at.NowNs - 1e9}
	require.NoError(t, table.Drain(1, func(chunk []Change) error {
		_, err := copied.Load(before, chunk[:1])
		return err
	}))
	slow := Limit{Algorithm: TokenBucket, Rate: Rate{Units: 1, PerNs: 1 << 40}, Max: 20}
	require.Equal(t, store.ShortBucketLen, store.BucketLen(&slow))
	copied.Decide(before, []Op{{Key: []byte("k"), Limit: slow, Cost: 1}}, d[:])
	require.Zero(t, d[0].Allowed)
	require.Equal(t, slow.MostMissing().Sub(slow.Rate.Grains(19)).MsUp(1), d[0].RetryMs)
}
