package budget

import (
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// all is the whole bound, and half is half of it.
var all, half = Level{1, 1}, Level{1, 2}

// table is a table of a given size.
type table struct {
	bytes        int64
	high, urgent int64 // of the last CompactAbove
	steps        int   // of all calls of Compact
	gaveWay      int   // calls of giveWay
}

func (t *table) MemoryBytes() int64              { return t.bytes }
func (t *table) CompactAbove(high, urgent int64) { t.high, t.urgent = high, urgent }
func (t *table) Compact(steps int)               { t.steps += steps }

// join returns tables of some sizes with their shares.
func join(b *Budget, sizes ...int64) (tables []*table, shares []*Share) {
	for _, size := range sizes {
		one := &table{bytes: size}
		tables = append(tables, one)
		shares = append(shares, b.Join(func() Table { return one }, func() { one.gaveWay++ }))
	}
	return tables, shares
}

// TestPartsFollowUse checks which tables exceed their part of 1,000 bytes, and by how much.
func TestPartsFollowUse(t *testing.T) {
	for name, c := range map[string]struct{ sizes, over []int64 }{
		"one takes what is left":              {[]int64{700, 100, 100, 0}, []int64{-100, -100, -100, -100}},
		"the bound is reached":                {[]int64{800, 100, 100, 0}, []int64{0, 0, 0, 0}},
		"the largest gives way":               {[]int64{900, 100, 100, 0}, []int64{100, -350, -350, -400}},
		"two large ones become equal":         {[]int64{700, 500, 100, 0}, []int64{250, 50, -233, -300}},
		"two of the same size":                {[]int64{600, 600, 100, 0}, []int64{150, 150, -233, -300}},
		"all are alike":                       {[]int64{300, 300, 300, 300}, []int64{50, 50, 50, 50}},
		"an equal part is kept in any case":   {[]int64{5000, 250, 250, 249}, []int64{4749, 0, 0, -1}},
		"a table within its part may grow on": {[]int64{5000, 10, 0, 0}, []int64{4010, -490, -495, -495}},
	} {
		t.Run(name, func(t *testing.T) {
			_, shares := join(New(1000, 4, true), c.sizes...)
			for i, s := range shares {
				require.Equal(t, c.over[i], s.Over(c.sizes[i], all), "table %d", i)
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
			sizes[i] = rng.Int64N(1 << rng.IntN(12))
		}
		const bound = 1 << 10
		_, shares := join(New(bound, n, true), sizes...)
		total, cut := int64(0), int64(0)
		for i, s := range shares {
			over := s.Over(sizes[i], all)
			if over > 0 {
				require.Greater(t, sizes[i], int64(bound/n), "%v", sizes)
			}
			total, cut = total+sizes[i], cut+sizes[i]-max(over, 0)
		}
		require.LessOrEqual(t, cut, int64(bound), "%v", sizes)
		if total > bound {
			require.Greater(t, cut, int64(bound-n), "nothing may be left: %v", sizes)
		}
	}
}

// TestEqualParts checks that a group whose parts do not follow use never depends on the others.
func TestEqualParts(t *testing.T) {
	b := New(1000, 4, false)
	tables, shares := join(b, 900, 100)
	require.EqualValues(t, 650, shares[0].Over(900, all))
	require.EqualValues(t, -150, shares[1].Over(100, all))
	require.EqualValues(t, -25, shares[1].Over(100, half), "half of the part")
	require.Zero(t, shares[1].HostOver(1<<20, all))
	shares[0].Settle()
	shares[0].Grown()
	require.Zero(t, tables[0].steps, "a table with a bound of its own frees pages by itself")
	require.Zero(t, tables[0].gaveWay)

	_, shares = join(New(1000, 1, true), 900)
	require.EqualValues(t, -100, shares[0].Over(900, all))
	require.Zero(t, shares[0].HostOver(1<<20, all), "a single group has no others to wait for")
}

// TestHostOver checks that the bytes of all groups count, the group's own as they are now.
func TestHostOver(t *testing.T) {
	tables, shares := join(New(1000, 2, true), 400, 500)
	require.EqualValues(t, -90, shares[0].HostOver(10, all))
	tables[0].bytes = 600
	require.EqualValues(t, 110, shares[0].HostOver(10, all))
	require.EqualValues(t, 610, shares[0].HostOver(10, half))
}

// TestSizesAreRenewed checks that the sizes of other tables are read again after a while, and after a table has left.
func TestSizesAreRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tables, shares := join(New(1000, 2, true), 400, 500)
		require.EqualValues(t, -100, shares[0].Over(400, all))
		tables[1].bytes = 100
		require.EqualValues(t, -100, shares[0].Over(400, all), "the size was read a moment ago")
		time.Sleep(time.Second)
		require.EqualValues(t, -500, shares[0].Over(400, all))
		shares[1].Leave()
		require.EqualValues(t, -600, shares[0].Over(400, all))
		shares[0].Leave()
		require.EqualValues(t, 400, shares[0].Over(1400, all), "a group that has left sees an empty host")
	})
}

// TestSettle checks when a table frees pages: above its part of High, which is 15,000 bytes of the bound.
func TestSettle(t *testing.T) {
	tables, shares := join(New(16_000, 2, true), 11_000, 4_000)
	for i, s := range shares {
		s.Settle()
		require.EqualValues(t, math.MaxInt64, tables[i].high)
		require.EqualValues(t, math.MaxInt64, tables[i].urgent)
		require.Zero(t, tables[i].steps)
	}
	tables, shares = join(New(16_000, 2, true), 12_000, 4_000)
	for _, s := range shares {
		s.Settle()
	}
	require.EqualValues(t, 11_000, tables[0].high)
	require.EqualValues(t, 11_500, tables[0].urgent)
	require.Positive(t, tables[0].steps)
	require.Zero(t, tables[1].steps, "a table within its part frees nothing for others")
}

// TestTheLargestGivesWay checks that the growth of one group makes the group give way that exceeds its part.
func TestTheLargestGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tables, shares := join(New(16_000, 3, true), 11_000, 2_000, 2_000)
		shares[1].Grown()
		require.Zero(t, tables[0].gaveWay, "the host has memory left")
		tables[1].bytes += 500
		shares[1].Grown()
		require.Zero(t, tables[0].gaveWay, "the sizes were read a moment ago")
		time.Sleep(renewAfter)
		shares[1].Grown()
		require.Equal(t, 1, tables[0].gaveWay)
		require.EqualValues(t, 10_500, tables[0].high)
		require.EqualValues(t, 11_000, tables[0].urgent)
		require.Zero(t, tables[1].gaveWay)
		require.Zero(t, tables[1].high, "its table goes on as before")
	})
}
