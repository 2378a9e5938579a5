package router

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
)

// blocksOf returns n operations on the blocks everywhere of different addresses, whose keys are in the first group.
func blocksOf(r *Router, code engine.OpCode, n int) (ops []engine.Op) {
	for i := 0; len(ops) < n; i++ {
		key := fmt.Appendf(nil, "ip:10.%d.%d.%d", i/40_000, i/200%200, i%200)
		if r.groupOf(key) == 0 {
			ops = append(ops, engine.Op{Code: code, Key: key, TTLNs: engine.Never})
		}
	}
	return ops
}

// decideAll decides operations in batches, and checks that none is refused.
func decideAll(t *testing.T, r *Router, ops []engine.Op) {
	for ; len(ops) > 0; ops = ops[min(batchOps, len(ops)):] {
		for _, d := range decide(t, r, ops[:min(batchOps, len(ops))]...) {
			require.Equal(t, engine.OK, d.Status)
		}
	}
}

// followed returns how many changes a group has followed, and forgets them.
func (g *fakeGroup) followed() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.changes
	g.changes = 0
	return n
}

// TestAHundredThousandBlocks checks that all blocks that may be in force reach a group, each once, and that one more is
// refused with the bound. Then a change is one change, whatever the number of blocks.
func TestAHundredThousandBlocks(t *testing.T) {
	const n = engine.MaxBlocksEverywhere
	r, groups := newTest(t, 2)
	blocks := blocksOf(r, engine.OpBlockEverywhere, n)
	decideAll(t, r, blocks[:1000])
	require.Equal(t, 1000, groups[1].followed())
	groups[0].table.Decide(at, blocks[1000:], make([]engine.Decision, n-1000))
	more := decide(t, r, engine.Op{Code: engine.OpBlockEverywhere, Key: []byte("more"), TTLNs: engine.Never})[0]
	require.Equal(t, engine.Decision{Status: engine.BlocksFull, Remaining: n}, more)
	require.Eventually(t, func() bool { // the router compares as well, and then one of the two gives way
		bringAllNow(r, groups)
		return groups[1].SharedVersion() == groups[0].SharedVersion()
	}, time.Minute, time.Millisecond)
	require.Equal(t, n-1000, groups[1].followed())
	decide(t, r, blocksOf(r, engine.OpUnblock, 3)...)
	require.Equal(t, 3, groups[1].followed())
	requireEqualGroups(t, groups)
	require.EqualValues(t, n-3, r.Len(0))
}

// TestAGroupFarBehindGetsTheWholeSet checks that the first group remembers 4,096 removals. A group that is further
// behind, or behind a removal before the last restart, is compared as a whole. Both ways lead to the same blocks.
func TestAGroupFarBehindGetsTheWholeSet(t *testing.T) {
	for _, removals := range []int{4096, 4097} {
		r, groups := newTest(t, 2)
		decideAll(t, r, blocksOf(r, engine.OpBlockEverywhere, 5000))
		behind := groups[1].Shared()
		groups[1].fail(limiter.ErrTryAgain)
		lifts := blocksOf(r, engine.OpUnblock, removals)
		for _, op := range append(lifts, blocksOf(r, engine.OpBlockEverywhere, 1)...) {
			groups[0].table.Decide(at, []engine.Op{op}, make([]engine.Decision, 1))
		}
		want := groups[0].Shared()
		changed, removed, known := want.BlocksSince(behind.Version)
		require.Equal(t, removals == 4096, known)
		if known {
			require.Len(t, removed, removals)
			require.Len(t, changed, 1)
		}
		_, removed, known = want.BlocksSince(want.Version - 11) // ten removals and a block
		require.True(t, known)
		require.Len(t, removed, 10)
		groups[1].followed()
		groups[1].fail(nil)
		require.Eventually(t, func() bool { // the router compares as well, and then one of the two gives way
			bringAllNow(r, groups)
			return groups[1].SharedVersion() == groups[0].SharedVersion()
		}, time.Minute, time.Millisecond)
		require.Equal(t, removals, groups[1].followed(), "all but one are lifted, and that one is replaced")
		requireEqualGroups(t, groups)
	}
}

// TestComparisonsAreNotRepeated checks that blocks which were equal are compared again after any change of them in one
// of the groups, of their versions, or of the difference of the clocks, and not before.
func TestComparisonsAreNotRepeated(t *testing.T) {
	r, groups := newTest(t, 2)
	block := engine.Op{Code: engine.OpBlockEverywhere, Key: []byte("ip:1"), TTLNs: int64(time.Hour)}
	state := make([]followed, 2)
	covered := func() bool { return state[1].equal.covers(groups[0].Shared(), groups[1].Shared()) }
	compareAll := func() {
		bringAllNow(r, groups)
		r.compare(state, true)
		r.compare(state, true)
		require.True(t, covered())
	}
	decide(t, r, setPolicy("p", 2), block)
	require.False(t, covered())
	compareAll()
	decide(t, r, setPolicy("p", 3), quota("k", 3))
	require.True(t, covered(), "no block has changed")
	for i, change := range []func(){
		func() { decide(t, r, block) },
		func() { decide(t, r, engine.Op{Code: engine.OpUnblock, Key: block.Key}) },
		func() { require.NoError(t, r.Clear()) },
		func() { require.NoError(t, renumber(groups[0], groups[0].SharedVersion()+1)) },
		func() { groups[1].table.Decide(at, []engine.Op{block}, make([]engine.Decision, 1)) }, // by an older node
	} {
		decide(t, r, block)
		compareAll()
		change()
		require.False(t, covered(), "change %d", i)
		compareAll()
		requireEqualGroups(t, groups)
	}
	want, have := groups[0].Shared(), groups[1].Shared()
	want.NowNs += int64(time.Hour)
	have.NowNs += int64(time.Hour)
	require.True(t, state[1].equal.covers(want, have))
	have.NowNs += int64(2 * time.Second)
	require.False(t, state[1].equal.covers(want, have))
}

// TestGroupsOfTwoForms checks that groups which decide by different rules, because they have not all begun with the
// newest log form, have the same blocks with the same versions, and still have when all have begun.
func TestGroupsOfTwoForms(t *testing.T) {
	for seed := range uint64(20) {
		r, groups := newTest(t, 4)
		rnd := rand.New(rand.NewPCG(seed, 5))
		for _, g := range groups {
			g.table.SetRules(engine.RulesNetworks)
		}
		order := rnd.Perm(len(groups))
		for i := range 400 {
			if i%80 == 79 && len(order) > 0 {
				groups[order[0]].table.SetRules(engine.RulesManyBlocks)
				order = order[1:]
			}
			if g := groups[rnd.IntN(4)]; rnd.IntN(10) == 0 {
				g.fail(limiter.ErrTryAgain)
				decide(t, r, shareOps(rnd))
				g.fail(nil)
			}
			decide(t, r, shareOps(rnd))
			if i%20 == 0 {
				bringAllNow(r, groups)
				requireEqualGroups(t, groups)
			}
		}
		bringAllNow(r, groups)
		requireEqualGroups(t, groups)
	}
}

// TestAnOldGroupRefusesMoreBlocks checks that a group by older rules refuses blocks over its bound, the answer counts
// it as behind, and it gets them as soon as it decides by newer rules.
func TestAnOldGroupRefusesMoreBlocks(t *testing.T) {
	r, groups := newTest(t, 2)
	groups[1].table.SetRules(engine.RulesNetworks)
	decideAll(t, r, blocksOf(r, engine.OpBlockEverywhere, 1000))
	more := engine.Op{Code: engine.OpBlockEverywhere, Key: []byte("more"), TTLNs: engine.Never}
	require.Equal(t, engine.Decision{Status: limiter.ErrSomeGroups.Status(), Allowed: 1, Limit: 2},
		decide(t, r, more)[0])
	groups[1].table.SetRules(engine.RulesManyBlocks)
	bringAllNow(r, groups)
	requireEqualGroups(t, groups)
}
