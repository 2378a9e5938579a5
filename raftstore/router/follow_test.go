package router

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
)

// items lists the shared items of a group, with the versions of their last changes, and without what each group counts
// or stamps alone.
func items(s *engine.SharedItems) (list []string) {
	for _, p := range s.Policies.All() {
		list = append(list, fmt.Sprintf("%s %+v %x", p.Name, s.Policy(p.Name), terms(p)))
		for _, o := range p.Overrides {
			list = append(list, fmt.Sprintf("%s override %s %x", p.Name, o.Pattern, encoded(o.Limits)))
		}
	}
	policies := len(list)
	for b := range s.Blocks() {
		list = append(list, fmt.Sprintf("%s %d %s %v", b.Key, b.Version, b.Reason, b.UntilNs == engine.Never))
	}
	slices.Sort(list[policies:])
	return list
}

// terms returns the encoding of a policy without its version, its overrides and its history.
func terms(p *engine.Policy) []byte {
	return set(p, 0).Policy.Terms.Append(nil)
}

// bringAllNow makes what the node that leads the first group does in a while.
func bringAllNow(r *Router, groups []*fakeGroup) {
	groups[0].lead()
	state := make([]followed, len(groups))
	r.compare(state, false)
	r.compare(state, false)
}

func requireEqualGroups(t *testing.T, groups []*fakeGroup) {
	want := groups[0].Shared()
	for i, g := range groups[1:] {
		have := g.Shared()
		require.Equal(t, want.Version, have.Version, "group %d", i+1)
		require.Equal(t, items(want), items(have), "group %d", i+1)
	}
}

// shareOps are changes of every kind of two clients, on few names.
func shareOps(rnd *rand.Rand) engine.Op {
	name := fmt.Sprint("p", rnd.IntN(3))
	key := fmt.Sprint("ip:", rnd.IntN(3))
	switch rnd.IntN(10) {
	case 0, 1:
		return setPolicy(name, 1+rnd.Int64N(3))
	case 2:
		return change(name, engine.PolicyChange{Do: engine.PolicyDelete})
	case 3:
		return change(name, engine.PolicyChange{Do: engine.PolicyDo(rnd.IntN(4)) + engine.PolicyEnable})
	case 4:
		o := engine.Override{Pattern: key, Limits: limitOf(rnd.Int64N(2) + 1).Limits}
		return override(name, engine.PolicyOverride, o, int64(time.Minute), 0)
	case 5:
		op := setPolicy(name, 1)
		op.Policy.Reset, op.Policy.Terms.Layout = true, fmt.Sprint("rl", rnd.IntN(2), ":{key}")
		return op
	case 6, 7:
		return engine.Op{Code: engine.OpUnblock, Key: []byte(key), ID: fmt.Append(nil, rnd.IntN(100))}
	}
	op := engine.Op{Code: engine.OpBlockEverywhere, Key: []byte(key), TTLNs: engine.Never,
		Text: fmt.Append(nil, rnd.IntN(9))}
	if rnd.IntN(2) == 0 {
		op.ID = fmt.Append(nil, 100+rnd.IntN(100))
	}
	return op
}

// TestGroupsAreBehindAndNeverDifferent lets two clients change shared items at once, at two nodes, while groups fail
// and come back, and repeat changes with their tokens. After that every group has the items of the first one. The
// versions of a group never go back.
func TestGroupsAreBehindAndNeverDifferent(t *testing.T) {
	for seed := range uint64(40) {
		a, groups := newTest(t, 4)
		b := New(a.all(), 0, a.log, a.faults)
		b.bringFor = 0
		var clients sync.WaitGroup
		for c, r := range []*Router{a, b} {
			clients.Go(func() {
				rnd := rand.New(rand.NewPCG(seed, uint64(c)))
				for range 60 {
					op, out := shareOps(rnd), make([]engine.Decision, 1)
					for range 1 + rnd.IntN(2) { // the second time with the same token, if it has one
						require.NoError(t, r.Decide([]engine.Op{op}, out))
					}
				}
			})
		}
		rnd := rand.New(rand.NewPCG(seed, 9))
		for range 30 {
			g := groups[rnd.IntN(len(groups))]
			g.fail([]error{limiter.ErrTryAgain, limiter.ErrUnknownOutcome, limiter.ErrClusterDown}[rnd.IntN(3)])
			for range rnd.IntN(300) {
				runtime.Gosched()
			}
			g.fail(nil)
		}
		clients.Wait()
		bringAllNow(a, groups)
		requireEqualGroups(t, groups)
		b.Close()
	}
}

// TestAGroupFollowsAtTheNextComparison checks that a group that missed changes gets them from the node that leads the
// first group, with the usage of a policy deleted as the first group did.
func TestAGroupFollowsAtTheNextComparison(t *testing.T) {
	r, groups := newTest(t, 2)
	key := keysOf(r, 1, 1)[0]
	check := engine.Op{Code: engine.OpCheck, Cost: 1, Key: []byte(key), Text: []byte("stays")}
	decide(t, r, setPolicy("stays", 5), setPolicy("goes", 2), check)
	groups[1].fail(limiter.ErrClusterDown)
	require.Equal(t, engine.Decision{Status: limiter.ErrSomeGroups.Status(), Allowed: 1, Limit: 2},
		decide(t, r, change("stays", engine.PolicyChange{Do: engine.PolicyDelete}))[0])
	decide(t, r, setPolicy("stays", 5), setPolicy("new", 5),
		change("goes", engine.PolicyChange{Do: engine.PolicyDelete}))
	groups[1].fail(nil)
	state := make([]followed, 2)
	r.compare(state, false)
	require.False(t, state[1].behind, "this node does not lead the first group")
	groups[0].lead()
	r.compare(state, false)
	require.True(t, state[1].behind)
	require.Equal(t, []int64{5, 0}, mostOf(groups, "new"), "a change may be on its way")
	r.compare(state, false)
	requireEqualGroups(t, groups)
	require.EqualValues(t, 4, decide(t, r, check)[0].Remaining, "the usage of the deleted policy is gone")
}

// TestALateBatchChangesNothing checks that a batch that was made for an earlier version is refused, whatever it has.
func TestALateBatchChangesNothing(t *testing.T) {
	r, groups := newTest(t, 2)
	block := engine.Op{Code: engine.OpBlockEverywhere, Key: []byte("ip:1"), TTLNs: engine.Never}
	decide(t, r, block)
	old, have := groups[0].Shared(), &engine.SharedItems{Policies: groups[1].Policies()}
	decide(t, r, engine.Op{Code: engine.OpUnblock, Key: block.Key})
	for _, from := range []uint64{0, 1, old.Version} {
		begin := engine.Op{Code: engine.OpFollow, Key: []byte("shared"), Cost: int64(old.Version), WaitNs: int64(from)}
		batch := append([]engine.Op{begin}, difference(old, have, new(comparison))...)
		out := make([]engine.Decision, len(batch))
		groups[1].table.DecideAtomic(at, batch, out)
		require.Equal(t, engine.PolicyChanged, out[0].Status)
		require.Equal(t, engine.Abandoned, out[1].Status)
	}
	requireEqualGroups(t, groups)
}

// TestABlockOfOneKeyAsksItsGroup checks that the other groups, and the first one, may be down.
func TestABlockOfOneKeyAsksItsGroup(t *testing.T) {
	r, groups := newTest(t, 4)
	key := []byte(keysOf(r, 2, 1)[0])
	for _, g := range []int{0, 1, 3} {
		groups[g].fail(limiter.ErrClusterDown)
	}
	out := decide(t, r, engine.Op{Code: engine.OpBlock, Key: key, TTLNs: engine.Never})
	require.Equal(t, []engine.Status{engine.OK}, []engine.Status{out[0].Status})
	require.Zero(t, decide(t, r, quota(string(key), 9))[0].Allowed)
	require.Equal(t, limiter.ErrClusterDown.Status(),
		decide(t, r, engine.Op{Code: engine.OpUnblock, Key: key})[0].Status,
		"nobody knows whether the key has a block everywhere")
	groups[0].fail(nil)
	require.EqualValues(t, 1, decide(t, r, engine.Op{Code: engine.OpUnblock, Key: key})[0].Allowed)
}

// TestABlockInATransaction checks that a transaction blocks and unblocks its key, and refuses to lift a block
// everywhere.
func TestABlockInATransaction(t *testing.T) {
	r, groups := newTest(t, 4)
	key := []byte(keysOf(r, 2, 1)[0])
	out := make([]engine.Decision, 2)
	block := engine.Op{Code: engine.OpBlock, Key: key, TTLNs: engine.Never}
	lift := engine.Op{Code: engine.OpUnblock, Key: key}
	require.NoError(t, r.DecideAtomic([]engine.Op{block, quota(string(key), 9)}, out))
	require.Equal(t, []int64{1, 0}, []int64{out[0].Allowed, out[1].Allowed})
	require.NoError(t, r.DecideAtomic([]engine.Op{lift, quota(string(key), 9)}, out))
	require.Equal(t, []int64{1, 1}, []int64{out[0].Allowed, out[1].Allowed})

	everywhere := block
	everywhere.Code = engine.OpBlockEverywhere
	require.NoError(t, r.DecideAtomic([]engine.Op{everywhere, setPolicy("p", 3)}, out), "both are shared by all groups")
	requireEqualGroups(t, groups)
	require.NoError(t, r.DecideAtomic([]engine.Op{lift, quota(string(key), 9)}, out))
	require.Equal(t, engine.EverywhereStays, out[0].Status)
	err := r.DecideAtomic([]engine.Op{setPolicy("p", 4), quota(string(key), 9)}, out)
	require.ErrorIs(t, err, limiter.ErrCrossSlot)
	require.ErrorContains(t, err, "apart")
}

// TestARepeatedUnblockLiftsNoLaterBlock checks that the first group decides about a token once.
func TestARepeatedUnblockLiftsNoLaterBlock(t *testing.T) {
	r, groups := newTest(t, 4)
	for g := range groups {
		block := engine.Op{Code: engine.OpBlockEverywhere, Key: []byte(keysOf(r, g, 1)[0]), TTLNs: engine.Never}
		lift := engine.Op{Code: engine.OpUnblock, Key: block.Key, ID: []byte("t")}
		decide(t, r, block)
		require.EqualValues(t, 1, decide(t, r, lift)[0].Allowed)
		require.EqualValues(t, 1, decide(t, r, lift)[0].Allowed, "the group of the key had no block of its own")
		decide(t, r, block)
		require.EqualValues(t, 1, decide(t, r, lift)[0].Allowed, "as the first time")
		require.Len(t, r.BlocksEverywhere().Keys(), g+1)
	}
	requireEqualGroups(t, groups)
}

// TestAnIDOfABlockIsBound checks that the ID of a block EVERYWHERE with another duration changes no group, and that the
// same request gets the first answer and blocks no group again.
func TestAnIDOfABlockIsBound(t *testing.T) {
	r, groups := newTest(t, 4)
	bound := func(op engine.Op) engine.Op {
		op.ID = []byte("x")
		op.Bind()
		return op
	}
	for g := range groups {
		key := []byte(keysOf(r, g, 1)[0])
		block := bound(engine.Op{Code: engine.OpBlockEverywhere, Key: key, TTLNs: int64(time.Hour)})
		require.EqualValues(t, 1, decide(t, r, block)[0].Allowed)
		longer := bound(engine.Op{Code: engine.OpBlockEverywhere, Key: key, TTLNs: int64(2 * time.Hour)})
		require.Equal(t, engine.OtherTerms, decide(t, r, longer)[0].Status)
		for _, group := range groups {
			b, _ := group.Shared().Block(string(key))
			require.Equal(t, at.NowNs+int64(time.Hour), b.UntilNs)
		}
		first := decide(t, r, block)[0]
		require.EqualValues(t, 1, decide(t, r, engine.Op{Code: engine.OpUnblock, Key: key})[0].Allowed)
		require.Equal(t, first, decide(t, r, block)[0])
		for _, group := range groups {
			require.Empty(t, group.BlocksEverywhere().Keys(), "blocked again")
		}
		requireEqualGroups(t, groups)

		own := bound(engine.Op{Code: engine.OpBlock, Key: key, TTLNs: int64(time.Hour)})
		own.ID = []byte("y")
		block.ID = nil
		decide(t, r, own, block)
		lift := bound(engine.Op{Code: engine.OpUnblock, Key: key})
		lift.ID = own.ID
		require.Equal(t, engine.OtherTerms, decide(t, r, lift)[0].Status)
		require.Len(t, groups[3].BlocksEverywhere().Keys(), 1, "the first group lifted a block")
		decide(t, r, engine.Op{Code: engine.OpUnblock, Key: key})
	}
}

// TestKeysAreCountedWhileGroupsDiffer checks that a block everywhere counts once, however many groups have it.
func TestKeysAreCountedWhileGroupsDiffer(t *testing.T) {
	r, groups := newTest(t, 4)
	key := keysOf(r, 1, 1)[0]
	groups[3].fail(limiter.ErrTryAgain)
	decide(t, r, engine.Op{Code: engine.OpBlockEverywhere, Key: []byte(key), TTLNs: engine.Never})
	require.EqualValues(t, 1, r.Len(0))
	require.EqualValues(t, 1, r.Stats().Keys)
}

// TestAClearOfSomeGroups checks that the error counts the groups that are empty, and is none after which nothing was
// changed.
func TestAClearOfSomeGroups(t *testing.T) {
	r, groups := newTest(t, 4)
	decide(t, r, engine.Op{Code: engine.OpBlockEverywhere, Key: []byte("ip:1"), TTLNs: engine.Never})
	groups[2].fail(limiter.ErrTryAgain)
	err := r.Clear()
	require.ErrorContains(t, err, "3 of 4 groups have the change, so repeat the command")
	require.NotErrorIs(t, err, limiter.ErrTryAgain)
	groups[2].fail(nil)
	bringAllNow(r, groups)
	requireEqualGroups(t, groups)
	require.Empty(t, groups[2].BlocksEverywhere().Keys())
	require.NoError(t, r.Clear())
	groups[0].fail(limiter.ErrTryAgain)
	for _, g := range groups {
		g.fail(limiter.ErrTryAgain)
	}
	require.ErrorIs(t, r.Clear(), limiter.ErrTryAgain)
}

// TestAFlushOfSomeGroups checks that FLUSHDB empties its database in every group, leaves the blocks everywhere, and
// says how many groups have done it.
func TestAFlushOfSomeGroups(t *testing.T) {
	r, groups := newTest(t, 4)
	decide(t, r, engine.Op{Code: engine.OpBlockEverywhere, Key: []byte("ip:1"), TTLNs: engine.Never})
	for g := range groups {
		key := keysOf(r, g, 1)[0]
		stored := quota(key, 9)
		stored.Key = engine.AppendStored(nil, 3, stored.Key)
		decide(t, r, quota(key, 9), stored)
	}
	groups[2].fail(limiter.ErrTryAgain)
	err := r.ClearDatabase(3)
	require.ErrorContains(t, err, "3 of 4 groups have the change, so repeat the command")
	groups[2].fail(nil)
	require.EqualValues(t, 1, r.Len(3))
	require.NoError(t, r.ClearDatabase(3))
	require.Zero(t, r.Len(3))
	require.EqualValues(t, 5, r.Len(0))
	require.NoError(t, r.ClearDatabase(0))
	require.EqualValues(t, 1, r.Len(0))
	requireEqualGroups(t, groups)
	for _, g := range groups {
		require.Len(t, g.BlocksEverywhere().Keys(), 1)
	}
}

// TestAGroupKeepsWhatItFollows checks that FLUSHALL in another group, and blocks from a node that has just restarted,
// change no block EVERYWHERE there. FLUSHALL through a node lifts it in all groups.
func TestAGroupKeepsWhatItFollows(t *testing.T) {
	r, groups := newTest(t, 4)
	key := []byte(keysOf(r, 2, 1)[0])
	decide(t, r, quota(string(key), 9), engine.Op{Code: engine.OpBlockEverywhere, Key: key, TTLNs: engine.Never})
	groups[2].table.Clear()
	require.Equal(t, engine.NoAlgorithm, func() engine.Algorithm { info, _ := r.Inspect(key); return info.Algorithm }())
	for _, code := range []engine.OpCode{engine.OpBlock, engine.OpUnblock} {
		op := engine.Op{Code: code, Key: key, TTLNs: int64(time.Hour)} // without High, as wire.Older makes it
		groups[2].table.Decide(at, []engine.Op{op}, make([]engine.Decision, 1))
		requireEqualGroups(t, groups)
		require.Len(t, groups[2].BlocksEverywhere().Keys(), 1)
	}
	require.NoError(t, r.Clear())
	requireEqualGroups(t, groups)
	for _, g := range groups {
		require.Empty(t, g.BlocksEverywhere().Keys())
	}
}

// TestSharedItemsAreStored checks that a table that was drained and loaded has the order and both blocks of a key.
func TestSharedItemsAreStored(t *testing.T) {
	r, groups := newTest(t, 2)
	tables := make([]*engine.Table, 2)
	for i := range groups {
		groups[i].table = engine.NewTable(engine.Options{TrackChanges: true})
		tables[i] = engine.NewTable(engine.Options{})
	}
	key := []byte(keysOf(r, 1, 1)[0])
	decide(t, r, setPolicy("p", 3),
		engine.Op{Code: engine.OpBlock, Key: key, TTLNs: int64(time.Hour), Text: []byte("own")},
		engine.Op{Code: engine.OpBlockEverywhere, Key: key, TTLNs: engine.Never, Text: []byte("all")})
	for i, g := range groups {
		require.NoError(t, g.table.Drain(100, func(chunk []engine.Change) error {
			_, err := tables[i].Load(at, chunk)
			return err
		}))
		require.Equal(t, g.table.StateHash(at), tables[i].StateHash(at))
		g.table = tables[i]
	}
	requireEqualGroups(t, groups)
	require.EqualValues(t, 2, groups[1].SharedVersion()-1)
	info, _ := r.Inspect(key)
	require.Equal(t, "all", info.Reason)
	begin := engine.Op{Code: engine.OpFollow, Key: key, WaitNs: int64(groups[1].SharedVersion()), Cost: 9}
	groups[1].table.DecideAtomic(at, []engine.Op{begin, {Code: engine.OpUnblock, Key: key}}, make([]engine.Decision, 2))
	info, _ = r.Inspect(key)
	require.Equal(t, "own", info.Reason)
}

// TestALostMajorityOfTheFirstGroup checks that groups that followed changes that the first group has lost get its
// items.
func TestALostMajorityOfTheFirstGroup(t *testing.T) {
	r, groups := newTest(t, 2)
	decide(t, r, setPolicy("p", 3), setPolicy("p", 4), setPolicy("q", 1))
	groups[0].table = engine.NewTable(engine.Options{})
	decide(t, r, setPolicy("p", 5))
	for range 2 {
		bringAllNow(r, groups)
	}
	requireEqualGroups(t, groups)
	require.Equal(t, []int64{5, 5}, mostOf(groups, "p"))
	require.Equal(t, []int64{0, 0}, mostOf(groups, "q"))
}
