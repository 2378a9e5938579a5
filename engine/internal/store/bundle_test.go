package store

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine/internal/arena"
	"github.com/weir-project/weir/engine/internal/rule"
)

// bundles is a store whose limiters have the names and hashes of a policy's limiters.
type bundles struct {
	filled
	reserve int // the Reserve of cells
}

func newBundles(reserve int) bundles {
	f := newFilled()
	plain := f.hashKey
	f.hashKey = func(name []byte) uint64 {
		_, number, key, ok := rule.SplitName(name)
		if !ok {
			return plain(name)
		}
		return SiblingHash(plain(key), number)
	}
	f.changes.on = true
	return bundles{f, reserve}
}

func limiterName(number int, key string) []byte {
	return append([]byte(rule.NamePrefix("p", number)), key...)
}

func (b bundles) cell(number int, key string) Cell {
	name := limiterName(number, key)
	c := Cell{Hash: b.hashKey(name), Key: name, Reserve: b.reserve}
	b.Open(&c)
	return c
}

// limits are limits with states of 12, 16, 24 and 16 bytes.
var limits = []rule.Limit{
	hourly,
	{Algorithm: rule.TokenBucket, Rate: rule.Rate{Units: 1, PerNs: rule.MaxWindowNs}, Max: rule.MaxUnits},
	{Algorithm: rule.SlidingCounter, WindowNs: 3600e9, Max: 1000},
	{Algorithm: rule.FixedWindow, Mode: rule.FromFirst, WindowNs: 3600e9, Max: 1000},
}

// use makes the used units of a limiter n, in a way that a reader of another limiter's bytes would not see.
func (b bundles) use(t *testing.T, number int, key string, n int64) Cell {
	c, l := b.cell(number, key), &limits[number%len(limits)]
	require.True(t, b.Ensure(&c, uint8(l.Algorithm), LimitStateLen(l)))
	b.SetLimit(c.Entry, l)
	c.Relink = true
	switch st := c.Entry.State(); l.Algorithm {
	case rule.SlidingCounter:
		SlidingCounter{b.NowNs, 0, n}.write(st)
	case rule.FixedWindow:
		FixedWindow{b.NowNs + l.WindowNs, n, 0}.Write(st)
	default:
		SetBucket(c.Entry, GoneAt(l.Rate.Grains(n), l.Rate, b.NowNs))
	}
	b.Touched(&c)
	return c
}

func (b bundles) used(number int, key string) int64 {
	if c := b.cell(number, key); c.Live {
		return b.UsedUnits(c.Entry)
	}
	return 0
}

func (b bundles) drain(t *testing.T) (keys []string) {
	var batch Batch
	for b.DrainBatch(&batch, 1000) {
	}
	for _, c := range batch.Changes(nil) {
		sign := "+"
		if c.Value == nil {
			sign = "-"
		}
		keys = append(keys, sign+string(c.Key))
	}
	require.NoError(t, b.Audit())
	return keys
}

func bytesOfMembers(numbers int) (n int) {
	for i := range numbers {
		n += MemberLen(&limits[i%len(limits)])
	}
	return n
}

// TestMembersShareASlot checks that the limiters of a key are in one slot, which has its whole size from the beginning.
func TestMembersShareASlot(t *testing.T) {
	b := newBundles(bytesOfMembers(8))
	for number := range 8 {
		b.use(t, number, "k", int64(number)+1)
		require.NoError(t, b.Audit())
	}
	require.EqualValues(t, b.Slab.Len(b.cell(0, "k").Ref), b.Slab.UsedBytes())
	require.Equal(t, arena.ClassOf(BundleLen(len(limiterName(0, "k")), b.reserve)), b.Slab.ClassAt(b.cell(0, "k").Ref))
	require.Zero(t, b.Moves, "the bundle must have room for all from the beginning")
	for number := range 8 {
		require.EqualValues(t, number+1, b.used(number, "k"))
		require.Zero(t, b.used(number, "other"))
	}
	require.Len(t, b.drain(t), 1)
}

// TestMembersAreFoundInAnyOrder adds limiters in all orders to a bundle without room, as loading does.
func TestMembersAreFoundInAnyOrder(t *testing.T) {
	for seed := range uint64(50) {
		b := newBundles(0)
		for i, number := range rand.New(rand.NewPCG(seed, 1)).Perm(8) {
			b.use(t, number, "k", int64(number)+1)
			require.NoError(t, b.Audit(), "after %d", i)
		}
		require.EqualValues(t, b.Slab.Len(b.cell(0, "k").Ref), b.Slab.UsedBytes(), "a limiter stayed outside")
		for number := range 8 {
			require.EqualValues(t, number+1, b.used(number, "k"))
		}
		require.Equal(t, []string{"+m" + string(limiterName(0, "k"))}, b.drain(t))
		c := b.cell(3, "k")
		b.Drop(&c)
		require.Equal(t, []string{"-l" + string(limiterName(3, "k"))}, b.drain(t))
	}
}

// TestALimiterKeepsItsMarksInABundle checks that a limiter that was stored, or changed since, has its mark after it
// moved into a bundle.
func TestALimiterKeepsItsMarksInABundle(t *testing.T) {
	stored, together := "l"+string(limiterName(0, "k")), "+m"+string(limiterName(0, "k"))
	for n := range 4 {
		changed, drained := n&1 > 0, n&2 > 0
		b := newBundles(0)
		b.use(t, 0, "k", 1)
		require.Equal(t, []string{"+" + stored}, b.drain(t))
		if changed {
			b.use(t, 0, "k", 2)
		}
		b.use(t, 5, "k", 7)
		want := []string{"-" + stored, together}
		if drained {
			require.Equal(t, []string{together}, b.drain(t))
			want = want[:1]
		}
		c := b.cell(0, "k")
		b.Drop(&c)
		require.Equal(t, want, b.drain(t))
		require.EqualValues(t, 7, b.used(5, "k"))
	}
}

// TestABundleIsStoredWithItsOwnLimits checks the limits in the stored form of a bundle. Between two drains, a new
// limit may get the number of a removed limit.
func TestABundleIsStoredWithItsOwnLimits(t *testing.T) {
	b := newBundles(0)
	for n := range int64(3) {
		limits := []rule.Limit{hourly, {Algorithm: rule.TokenBucket, Rate: hourly.Rate, Max: 1000 + n}}
		for number := range limits {
			c := b.cell(number, fmt.Sprint("k", n))
			require.True(t, b.Ensure(&c, uint8(rule.TokenBucket), LimitStateLen(&limits[number])))
			b.SetLimit(c.Entry, &limits[number])
			c.Relink = true
			SetBucket(c.Entry, GoneAt(limits[number].Rate.Grains(5), limits[number].Rate, b.NowNs))
			b.Touched(&c)
		}
		var batch Batch
		b.DrainBatch(&batch, 1)
		to, name := newBundles(0), limiterName(0, fmt.Sprint("k", n))
		change := batch.Changes(nil)[0]
		loaded, err := to.LoadBundle(to.hashKey(name), change.Key[1:], change.Value)
		require.NoError(t, err)
		require.True(t, loaded)
		for number, limit := range limits {
			c := to.cell(number, fmt.Sprint("k", n))
			require.Equal(t, limit, *to.Limits.At(c.Entry.Limit()))
		}
		for number := range slices.Backward(limits) { // the next limits get the same numbers
			c := b.cell(number, fmt.Sprint("k", n))
			b.Drop(&c)
		}
		b.drain(t)
	}
}

// TestAMemberIsReplaced removes members and adds others, with shorter, equal and longer states.
func TestAMemberIsReplaced(t *testing.T) {
	b, g := newBundles(0), rand.New(rand.NewPCG(3, 3))
	want := map[int]int64{}
	for i := range 5000 {
		number := g.IntN(8)
		if c := b.cell(number, "k"); c.Live && g.IntN(2) == 0 {
			b.Drop(&c)
			delete(want, number)
		} else {
			want[number] = 1 + g.Int64N(100)
			b.use(t, number, "k", want[number])
		}
		for number := range 8 {
			require.Equal(t, want[number], b.used(number, "k"), "limiter %d after %d steps", number, i)
		}
		require.NoError(t, b.Audit())
	}
	require.LessOrEqual(t, b.Slab.UsedBytes(), int64(256), "removed members must not take memory for ever")
}

// TestALiveLimiterKeepsItsKind checks that a log does not become a member of a bundle in place. Nothing would then
// remove the stored log.
func TestALiveLimiterKeepsItsKind(t *testing.T) {
	b := newBundles(60)
	c := b.cell(2, "k")
	log := rule.Limit{Algorithm: rule.SlidingLog, WindowNs: 3600e9, Max: 10}
	require.True(t, b.Ensure(&c, uint8(log.Algorithm), LimitStateLen(&log)))
	b.SetLimit(c.Entry, &log)
	b.Wheel.link(&b.Slab, c.Ref, b.NowNs+1)
	c.Live = true
	require.Panics(t, func() { b.Ensure(&c, uint8(rule.SlidingCounter), LimitStateLen(&limits[2])) })
	c.Live = false
	require.True(t, b.Ensure(&c, uint8(rule.SlidingCounter), LimitStateLen(&limits[2])), "an idle one is removed first")
}

// TestABundleExpiresWithItsLastMember checks that a bundle is dropped with all of its members, and not while one of
// them is not idle. A window without end, which is removed, does not keep the others.
func TestABundleExpiresWithItsLastMember(t *testing.T) {
	b := newBundles(0)
	forever := rule.Limit{Algorithm: rule.FixedWindow, Mode: rule.Forever, Max: 10}
	b.use(t, 0, "k", 1)
	b.use(t, 4, "k", 10)
	c := b.cell(3, "k")
	require.True(t, b.Ensure(&c, uint8(rule.FixedWindow), LimitStateLen(&forever)))
	b.SetLimit(c.Entry, &forever)
	c.Relink = true
	FixedWindow{1<<63 - 1, 1, 0}.Write(c.Entry.State())
	b.Touched(&c)
	b.drain(t)

	b.NowNs += 11 * 3600e9
	b.CollectAll(func() {})
	require.NoError(t, b.Audit())
	require.EqualValues(t, 1, b.used(3, "k"))
	require.Zero(t, b.used(0, "k"), "an idle member counts as none")

	c = b.cell(3, "k")
	b.Drop(&c)
	b.CollectAll(func() {})
	require.Zero(t, b.Slab.UsedBytes())
	require.EqualValues(t, 2, b.Counts.Expired)
	require.Equal(t, []string{"-l" + string(limiterName(3, "k")), "-m" + string(limiterName(0, "k"))}, b.drain(t))
	require.Zero(t, b.bundles)
}

// TestEvictionOfABundle checks that an evicted bundle leaves nothing behind, and that all of its units are counted.
func TestEvictionOfABundle(t *testing.T) {
	b := newBundles(bytesOfMembers(4))
	for i := range 100 {
		for number := range 4 {
			b.use(t, number, fmt.Sprint("k", i), 2)
		}
	}
	for b.evict(0) {
		require.NoError(t, b.Audit())
	}
	require.Zero(t, b.Slab.UsedBytes())
	require.EqualValues(t, 400, b.Counts.Evicted)
	require.EqualValues(t, 800, b.Counts.Forgiven)
}

// TestBundlesAreCompacted moves bundles to other slots.
func TestBundlesAreCompacted(t *testing.T) {
	b := newBundles(bytesOfMembers(4))
	key := func(i int) string { return fmt.Sprint("k", i) }
	for i := range 2000 {
		for number := range 4 {
			b.use(t, number, key(i), int64(i%50)+1)
		}
	}
	for i := range 2000 {
		for number := range 4 {
			if c := b.cell(number, key(i)); i%2 == 0 {
				b.Drop(&c)
			}
		}
	}
	require.True(t, b.planCompaction(1))
	for b.compaction.running {
		b.compactSome()
	}
	require.NoError(t, b.Audit())
	for i := range 2000 {
		for number := range 4 {
			require.EqualValues(t, int64(i%2)*(int64(i%50)+1), b.used(number, key(i)))
		}
	}
}

// TestABundleIsNotEvictedForItsOwnMember adds a member when memory is nearly full, and nothing else can be evicted.
func TestABundleIsNotEvictedForItsOwnMember(t *testing.T) {
	b := newBundles(0)
	b.use(t, 1, "k", 5)
	for i := range 4000 {
		b.block(fmt.Appendf(nil, "%050d", i), 1e18)
	}
	used := b.Used.Bytes()
	b.memory.Bound(used+2*arena.PageBytes, LeastHarm, 1)
	require.True(t, b.mustEvict())
	b.use(t, 2, "k", 6)
	require.EqualValues(t, 5, b.used(1, "k"))
	require.EqualValues(t, 6, b.used(2, "k"))
	require.NoError(t, b.Audit())
}

// TestLoadingAMemberKeepsTheChangeOfAnother loads a limiter beside one that changed and was not drained.
func TestLoadingAMemberKeepsTheChangeOfAnother(t *testing.T) {
	from, to := newBundles(0), newBundles(0)
	from.use(t, 5, "k", 7)
	var batch Batch
	from.DrainBatch(&batch, 1)
	to.use(t, 0, "k", 1)
	c := to.cell(5, "k")
	value := batch.Changes(nil)[0].Value[2:] // without the count of members and the number
	loaded, err := to.Load(&c, value[0], value[1:])
	require.NoError(t, err)
	require.True(t, loaded)
	require.Contains(t, to.drain(t), "+m"+string(limiterName(0, "k")))
	require.EqualValues(t, 7, to.used(5, "k"))
}
