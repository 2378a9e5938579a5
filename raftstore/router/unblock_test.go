package router

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
)

// TestABlockThatLingersIsLifted checks a block everywhere that the first group has removed and another group has not. A
// command that lifts it says so, until all groups have removed it.
func TestABlockThatLingersIsLifted(t *testing.T) {
	for name, remove := range map[string]func(r *Router, groups []*fakeGroup, lift engine.Op){
		"another command": func(r *Router, _ []*fakeGroup, lift engine.Op) {
			require.Equal(t, limiter.ErrSomeGroups.Status(), decide(t, r, lift)[0].Status)
		},
		"FLUSHALL": func(_ *Router, groups []*fakeGroup, _ engine.Op) { groups[0].table.Clear() },
	} {
		t.Run(name, func(t *testing.T) {
			r, groups := newTest(t, 4)
			keys := keysOf(r, 2, 2)
			block := engine.Op{Code: engine.OpBlockEverywhere, Key: []byte(keys[0]), TTLNs: engine.Never}
			lift := engine.Op{Code: engine.OpUnblock, Key: block.Key}
			decide(t, r, block)
			groups[1].fail(limiter.ErrClusterDown)
			remove(r, groups, lift)
			require.Equal(t, limiter.ErrSomeGroups.Status(), decide(t, r, lift)[0].Status)
			if name != "FLUSHALL" { // which forgets what it removes
				other := engine.Op{Code: engine.OpUnblock, Key: []byte(keys[1])}
				require.Equal(t, engine.OK, decide(t, r, other)[0].Status, "this key had no block everywhere")
			}
			groups[1].fail(nil)
			require.Equal(t, engine.OK, decide(t, r, lift)[0].Status)
			requireEqualGroups(t, groups)
			require.Empty(t, groups[1].BlocksEverywhere().Keys())
		})
	}
}

// removing is a group that another node changes while its version is read.
type removing struct {
	*fakeGroup
	change func()
}

func (g removing) SharedVersion() uint64 {
	defer g.change()
	return g.fakeGroup.SharedVersion()
}

// TestABlockRemovedMeanwhileIsLifted checks a block everywhere that another node removes from the first group while
// this node looks whether a group has it.
func TestABlockRemovedMeanwhileIsLifted(t *testing.T) {
	r, groups := newTest(t, 4)
	key := []byte(keysOf(r, 2, 1)[0])
	lift := engine.Op{Code: engine.OpUnblock, Key: key}
	decide(t, r, engine.Op{Code: engine.OpBlockEverywhere, Key: key, TTLNs: engine.Never})
	groups[1].fail(limiter.ErrClusterDown)
	all := slices.Clone(r.all())
	all[3].live = removing{groups[3], func() {
		groups[0].table.Decide(at, []engine.Op{lift}, make([]engine.Decision, 1))
	}}
	r.groups.Store(&all)
	require.Equal(t, limiter.ErrSomeGroups.Status(), decide(t, r, lift)[0].Status)
}

// uncounted is a group of a cluster with a member that is too old to count changes.
type uncounted struct{ *fakeGroup }

func (g uncounted) Decide(ops []engine.Op, out []engine.Decision) error {
	if ops[0].Code == engine.OpFollow {
		return limiter.ErrOldMember
	}
	return g.fakeGroup.Decide(ops, out)
}

// TestABlockIsLiftedBesideAnOldMember checks a repeated lift where changes have no versions.
func TestABlockIsLiftedBesideAnOldMember(t *testing.T) {
	r, groups := newTest(t, 4)
	all := slices.Clone(r.all())
	for i := range all {
		all[i].live = uncounted{groups[i]}
	}
	r.groups.Store(&all)
	key := []byte(keysOf(r, 2, 1)[0])
	lift := engine.Op{Code: engine.OpUnblock, Key: key}
	decide(t, r, engine.Op{Code: engine.OpBlockEverywhere, Key: key, TTLNs: engine.Never})
	groups[1].fail(limiter.ErrClusterDown)
	for range 2 {
		require.Equal(t, limiter.ErrSomeGroups.Status(), decide(t, r, lift)[0].Status)
	}
	groups[1].fail(nil)
	require.Equal(t, engine.OK, decide(t, r, lift)[0].Status)
	require.Empty(t, groups[1].BlocksEverywhere().Keys())
}

// TestAnEndedGroupHoldsNoLiftBack checks that a node on which a group has ended lifts blocks in the other groups.
func TestAnEndedGroupHoldsNoLiftBack(t *testing.T) {
	r, _ := newTest(t, 4)
	keys := keysOf(r, 2, 2)
	block := engine.Op{Code: engine.OpBlock, Key: []byte(keys[0]), TTLNs: engine.Never}
	everywhere := engine.Op{Code: engine.OpBlockEverywhere, Key: []byte(keys[1]), TTLNs: engine.Never}
	decide(t, r, block, everywhere)
	all := slices.Clone(r.all())
	all[1] = replica{why: limiter.ErrClusterDown}
	r.groups.Store(&all)
	r.adopted.Store(0) // as after a start
	out := decide(t, r, engine.Op{Code: engine.OpUnblock, Key: block.Key})
	require.Equal(t, engine.OK, out[0].Status)
	require.EqualValues(t, 1, out[0].Allowed)
}

// TestABlockThatReplacedALongerOne checks a group that misses a block everywhere that replaced a longer one, until the
// shorter one has ended.
func TestABlockThatReplacedALongerOne(t *testing.T) {
	for name, then := range map[string]func(*Router, []*fakeGroup, engine.Op){
		"the group follows": func(r *Router, groups []*fakeGroup, _ engine.Op) { bringAllNow(r, groups) },
		"the block is lifted": func(r *Router, _ []*fakeGroup, lift engine.Op) {
			require.Equal(t, engine.OK, decide(t, r, lift)[0].Status)
		},
	} {
		t.Run(name, func(t *testing.T) {
			old := at
			t.Cleanup(func() { at = old })
			r, groups := newTest(t, 4)
			key := []byte(keysOf(r, 2, 1)[0])
			block := engine.Op{Code: engine.OpBlockEverywhere, Key: key, TTLNs: engine.Never}
			decide(t, r, block)
			groups[1].fail(limiter.ErrClusterDown)
			block.TTLNs = int64(time.Second)
			decide(t, r, block)
			at.NowNs += int64(time.Minute)
			groups[1].fail(nil)
			then(r, groups, engine.Op{Code: engine.OpUnblock, Key: key})
			requireEqualGroups(t, groups)
			require.Empty(t, groups[1].BlocksEverywhere().Keys())
		})
	}
}
