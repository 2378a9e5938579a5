package engine

import (
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
)

// mostBits is how long the largest state of a bucket is: the latest time, and as much as
// can be missing.
func mostBits(l *Limit) int {
	n := func(i int64) *big.Int { return big.NewInt(i) }
	missing := n(MaxUnits + l.Max)
	if l.Algorithm == LeakyBucket {
		missing = n(2*MaxUnits + 1)
	}
	time := new(big.Int).Mul(new(big.Int).Lsh(n(1), 62), n(l.Rate.Units))
	return time.Add(time, missing.Mul(missing, n(l.Rate.PerNs))).BitLen()
}

// TestBucketLen: a state is as long as its limit may need, and short under the usual ones.
func TestBucketLen(t *testing.T) {
	for _, usual := range []string{"1/s", "1000/s", "1000000000/s", "10/m", "1/h", "100/d", "5000000/d"} {
		rate, err := ParseRate([]byte(usual))
		require.NoError(t, err)
		l := Limit{Algorithm: TokenBucket, Rate: rate, Max: 1e6}
		require.Equal(t, bucketLen, l.bucketLen(), usual)
	}
	require.Equal(t, longBucketLen, (&Limit{Algorithm: TokenBucket, Rate: Rate{1, MaxWindowNs}, Max: 1}).bucketLen())
	for _, a := range []Algorithm{TokenBucket, LeakyBucket} {
		for units := int64(1); units <= MaxUnits; units *= 2 {
			for perNs := int64(1); perNs <= MaxWindowNs; perNs *= 2 {
				for _, max := range []int64{1, MaxUnits} {
					l := Limit{Algorithm: a, Rate: Rate{units, perNs}, Max: max}
					require.True(t, l.bucketLen() == longBucketLen || mostBits(&l) <= 8*bucketLen, "%v", l)
				}
			}
		}
	}
}

// TestEntryLen: what most keys cost, and that no entries share a mark.
func TestEntryLen(t *testing.T) {
	require.Equal(t, 40, entryLen(len("user:0123456789"), bucketLen))
	require.GreaterOrEqual(t, entryLen(1, blockLen), 8*markWords)
	require.LessOrEqual(t, 2+MaxNameLen+MaxIDLen, maxEntryKey, "the name of a token is the longest")
	require.Less(t, int(numKinds), 1<<kindBits)
}

// TestStateGrowsWithItsLimit: under a limit that may need more the same key has a longer
// entry, and what was used is still used, and back.
func TestStateGrowsWithItsLimit(t *testing.T) {
	table, at := NewTable(Options{Shards: 1, TrackChanges: true}), Stamp{NowNs: 1e18}
	short := Limit{Algorithm: TokenBucket, Rate: Rate{1, 1e9}, Max: 10}
	long := Limit{Algorithm: TokenBucket, Rate: Rate{1, MaxWindowNs}, Max: 20}
	ask := func(l Limit, cost int64) (d [1]Decision) {
		table.Decide(at, []Op{{Key: []byte("k"), Limit: l, Cost: cost}}, d[:])
		return d
	}
	require.EqualValues(t, 4, ask(short, 6)[0].Remaining)
	require.EqualValues(t, 3, ask(long, 1)[0].Remaining, "admitted, the tokens are kept")
	require.EqualValues(t, 2, ask(short, 1)[0].Remaining)
	denied := ask(long, 3)[0]
	require.Zero(t, denied.Allowed)
	require.EqualValues(t, 2, denied.Remaining, "denied, its limit is in force all the same")
	require.EqualValues(t, 1, table.Len(at))
	copied := NewTable(Options{Shards: 4})
	require.NoError(t, table.Drain(10, func(chunk []Change) error {
		for _, c := range chunk {
			if c.Value == nil {
				continue // of the entry that the longer one took the place of
			}
			if _, err := copied.Load(at, c.Key, c.Value); err != nil {
				return err
			}
		}
		return nil
	}))
	require.Equal(t, table.StateHash(at), copied.StateHash(at))
}
