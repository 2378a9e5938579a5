package budget

import (
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// table is a table of a given size.
type table struct {
	bytes        int64
	high, urgent int64 // of the last CompactAbove
	steps        int   // of all calls of Compact
	evicted      int   // calls of evict
}

func (t *table) MemoryBytes() int64              { return t.bytes }
func (t *table) CompactAbove(high, urgent int64) { t.high, t.urgent = high, urgent }
func (t *table) Compact(steps int)               { t.steps += steps }

// join returns tables of some sizes with their shares.
func join(b *Budget, sizes ...int64) (tables []*table, shares []*Share) {
	for _, size := range sizes {
		one := &table{bytes: size}
		tables = append(tables, one)
		shares = append(shares, b.Join(func() Table { return one }, func() { one.evicted++ }))
	}
	return tables, shares
}

// TestPartsFollowUse checks which tables exceed their part, and by how much. Of 16,000 bytes at High 15,000 may be used:
// 1,750 are reserved for each of four groups, and 8,000 are in the pool.
func TestPartsFollowUse(t *testing.T) {
	for name, c := range map[string]struct{ sizes, over []int64 }{
		"all are within their reserved parts": {[]int64{1_750, 1_000, 10, 0}, []int64{-8_000, -8_750, -9_740, -9_750}},
		"one takes of the pool":               {[]int64{8_750, 1_000, 1_000, 0}, []int64{-1_000, -1_750, -1_750, -2_750}},
		"one takes all of the pool":           {[]int64{9_750, 1_000, 1_000, 0}, []int64{0, -750, -750, -1_750}},
		"one takes more":                      {[]int64{9_850, 1_000, 1_850, 0}, []int64{200, -750, -3_900, -1_750}},
		"two large ones become equal":         {[]int64{8_750, 5_850, 1_000, 0}, []int64{3_000, 100, -750, -1_750}},
		"two of the same size":                {[]int64{6_750, 6_750, 1_000, 0}, []int64{1_000, 1_000, -750, -1_750}},
		"all are alike":                       {[]int64{4_750, 4_750, 4_750, 4_750}, []int64{1_000, 1_000, 1_000, 1_000}},
		"an equal part is kept in any case":   {[]int64{90_000, 3_750, 3_750, 3_749}, []int64{86_249, 0, 0, -1}},
	} {
		t.Run(name, func(t *testing.T) {
			_, shares := join(New(16_000, 4, true), c.sizes...)
			for i, s := range shares {
				require.Equal(t, c.over[i], s.Over(c.sizes[i], High), "table %d", i)
			}
		})
	}
}

// TestFairness checks the properties of the division for random sizes: a table that exceeds its part is larger than an
// equal part, and tables that are cut to their parts fit into the bound.
func TestFairness(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		n := 2 + rng.IntN(8)
		sizes := make([]int64, n)
		for i := range sizes {
			sizes[i] = rng.Int64N(1 << rng.IntN(15))
		}
		b := New(16_000, n, true)
		_, shares := join(b, sizes...)
		pool, cut := int64(0), int64(0)
		for i, s := range shares {
			over := max(s.Over(sizes[i], High), 0)
			if over > 0 {
				require.Greater(t, sizes[i], int64(15_000/n-1), "%v", sizes)
			}
			pool, cut = pool+max(sizes[i]-b.reserved, 0), cut+max(sizes[i]-over-b.reserved, 0)
		}
		require.LessOrEqual(t, cut, b.pool(High), "%v", sizes)
		if pool > b.pool(High) {
			require.Greater(t, cut, b.pool(High)-int64(n), "nothing may be left: %v", sizes)
		}
	}
}

// TestEqualParts checks that a group whose parts do not follow use never depends on the others.
func TestEqualParts(t *testing.T) {
	tables, shares := join(New(16_000, 4, false), 9_000, 1_000)
	require.EqualValues(t, 5_250, shares[0].Over(9_000, High))
	require.EqualValues(t, -2_500, shares[1].Over(1_000, Soft))
	require.Zero(t, shares[1].PoolExcess(1<<20, Full))
	shares[0].FreePages()
	shares[0].Grown()
	require.Zero(t, tables[0].high, "a table with a bound of its own frees pages by that bound")
	require.Zero(t, tables[0].evicted)

	_, shares = join(New(16_000, 1, true), 9_000)
	require.EqualValues(t, -6_000, shares[0].Over(9_000, High))
	require.Zero(t, shares[0].PoolExcess(1<<20, Full), "a single group has no others to wait for")
}

// TestNoBound checks that tables without a bound free no pages.
func TestNoBound(t *testing.T) {
	tables, shares := join(New(0, 4, true), 9_000, 1_000)
	shares[0].Grown()
	shares[0].FreePages()
	require.Equal(t, table{bytes: 9_000}, *tables[0])
}

// TestPoolExcess checks by how much a group exceeds the pool while the others keep their sizes. Of 16,000 bytes at Full 15,500
// may be used: 3,500 are reserved for each of two groups, and 8,500 are in the pool.
func TestPoolExcess(t *testing.T) {
	for _, c := range []struct{ others, size, excess int64 }{
		{10_000, 5_000, 0}, {10_000, 5_500, 0}, {10_000, 5_501, 1}, {10_000, 9_500, 4_000},
		{12_000, 3_500, 0}, {12_000, 3_510, 10}, {99_000, 3_500, 0}, {99_000, 3_510, 10},
	} {
		_, shares := join(New(16_000, 2, true), 1_000, c.others)
		require.Equal(t, c.excess, shares[0].PoolExcess(c.size, Full), "%+v", c)
	}
}

// TestSizesAreRenewed checks that the sizes of other tables are read again after a while, and after a table has left.
func TestSizesAreRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tables, shares := join(New(16_000, 2, true), 9_000, 5_500)
		require.EqualValues(t, -500, shares[0].Over(9_000, High))
		tables[1].bytes = 4_500
		require.EqualValues(t, -500, shares[0].Over(9_000, High), "the size was read a moment ago")
		time.Sleep(renewAfter)
		require.EqualValues(t, -1_500, shares[0].Over(9_000, High))
		shares[1].Leave()
		require.EqualValues(t, -2_500, shares[0].Over(9_000, High))
		shares[0].Leave()
		require.EqualValues(t, 500, shares[0].Over(12_000, High), "a group that has left sees an empty host")
	})
}

// TestAnExcessIsOfNow checks that a group which would evict keys, because others take too much, sees at once that they
// have evicted.
func TestAnExcessIsOfNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tables, shares := join(New(16_000, 2, true), 5_000, 12_000)
		require.EqualValues(t, 1_500, shares[0].PoolExcess(5_000, Full))
		tables[1].bytes = 10_600
		require.EqualValues(t, 100, shares[0].PoolExcess(5_000, Full))
		tables[1].bytes = 10_000
		require.Zero(t, shares[0].PoolExcess(5_000, Full))
	})
}

// TestFreePages checks when a table frees pages: above its part of High, or above its reserved part while the pool is
// used up.
func TestFreePages(t *testing.T) {
	const never = math.MaxInt64
	for name, c := range map[string]struct {
		sizes []int64
		want  table // the first of the tables
	}{
		"memory is left":                {[]int64{11_000, 4_000}, table{high: never, urgent: never}},
		"it exceeds its part":           {[]int64{12_000, 4_000}, table{high: 11_000, urgent: 11_500, steps: reclaimSteps}},
		"another does not evict":        {[]int64{4_000, 12_000}, table{high: 3_500, urgent: never, steps: reclaimSteps}},
		"it is within its reserved one": {[]int64{3_000, 99_000}, table{high: never, urgent: never}},
	} {
		tables, shares := join(New(16_000, 2, true), c.sizes...)
		shares[0].FreePages()
		c.want.bytes = c.sizes[0]
		require.Equal(t, c.want, *tables[0], name)
	}
}

// TestTheLargestGroupEvicts checks that the growth of one group makes the group evict that exceeds its part, however
// often other callers look at the sizes.
func TestTheLargestGroupEvicts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tables, shares := join(New(21_000/7*8, 3, true), 15_000, 3_750, 3_750)
		shares[1].Grown()
		require.Zero(t, tables[0].evicted, "memory is left")
		tables[1].bytes += 750
		shares[1].Grown()
		require.Zero(t, tables[0].evicted, "the sizes were read a moment ago")
		time.Sleep(renewAfter)
		shares[2].PoolExcess(9_000, Full) // reads the sizes
		shares[1].Grown()
		require.Equal(t, 1, tables[0].evicted)
		require.EqualValues(t, 14_250, tables[0].high)
		require.EqualValues(t, 15_000, tables[0].urgent)
		require.Zero(t, tables[1].evicted)
		require.Zero(t, tables[1].high, "its table goes on as before")
	})
}
