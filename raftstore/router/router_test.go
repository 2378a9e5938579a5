package router

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/engine/hashslot"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore"
	"github.com/weir-project/weir/raftstore/internal/host"
)

// TestAPipelineIsSplitByGroup: each group gets the operations on its slots in one call and in their order, and the
// answers stand where their operations stood.
func TestAPipelineIsSplitByGroup(t *testing.T) {
	r, groups := newTest(t, 4)
	var ops []engine.Op
	for range 3 {
		for key := range 50 {
			ops = append(ops, quota(fmt.Sprint("key", key), int64(100+key)))
		}
	}
	for i, d := range decide(t, r, ops...) {
		require.Equal(t, engine.OK, d.Status)
		key, round := i%50, i/50
		require.EqualValues(t, 100+key, d.Limit, "operation %d", i)
		require.EqualValues(t, 99+key-round, d.Remaining, "operation %d", i)
	}
	total := 0
	for _, g := range groups {
		require.Len(t, g.calls, 1)
		total += len(g.calls[0])
	}
	require.Equal(t, len(ops), total)
	require.EqualValues(t, 50, r.Len(0))
}

// TestAGroupFailsAlone: the operations of a group that cannot decide get its error as a status, and the others are
// answered. If all operations are of one group, the caller gets its error.
func TestAGroupFailsAlone(t *testing.T) {
	r, groups := newTest(t, 2)
	mine, others := keysOf(r, 0, 2), keysOf(r, 1, 2)
	for err, outcome := range map[error]limiter.Outcome{
		fmt.Errorf("x: %w", limiter.ErrTryAgain): limiter.ErrTryAgain, limiter.ErrNotLeader: limiter.ErrTryAgain,
		limiter.ErrClusterDown: limiter.ErrClusterDown, limiter.ErrOverloaded: limiter.ErrOverloaded,
		limiter.ErrOldMember: limiter.ErrOldMember, limiter.ErrUnknownOutcome: limiter.ErrUnknownOutcome,
		errors.New("anything else"): limiter.ErrUnknownOutcome,
	} {
		want := outcome.Status()
		groups[1].fail(err)
		out := decide(t, r, quota(mine[0], 10), quota(others[0], 10), quota(mine[1], 20), quota(others[1], 10))
		require.Equal(t, []engine.Status{0, want, 0, want}, []engine.Status{out[0].Status, out[1].Status,
			out[2].Status, out[3].Status}, "%v", err)
		require.Equal(t, engine.Decision{Status: want}, out[1])
		require.EqualValues(t, 20, out[2].Limit)
		require.ErrorIs(t, r.Decide([]engine.Op{quota(others[0], 10), quota(others[1], 10)}, out), err)
	}
}

// TestOneStepIsOnOneSlot: a check, a hold or a transaction over several slots is refused as a whole, also if one group
// owns both slots.
func TestOneStepIsOnOneSlot(t *testing.T) {
	r, groups := newTest(t, 2)
	keys := keysOf(r, 0, 2)
	check := engine.Op{Code: engine.OpCheck, Cost: 1, Key: []byte(keys[0]), Text: []byte("p"),
		Also: []engine.Pair{{Policy: []byte("p"), Key: []byte(keys[1])}}}
	hold := engine.Op{Code: engine.OpReserve, Cost: 1, Key: []byte(keys[0]), Text: []byte("p"), ID: []byte(keys[1])}
	out := decide(t, r, quota(keys[0], 5), check, hold, quota(keys[0], 5))
	crossed := limiter.ErrCrossSlot.Status()
	require.Equal(t, []engine.Status{engine.OK, crossed, crossed, engine.OK},
		[]engine.Status{out[0].Status, out[1].Status, out[2].Status, out[3].Status})
	require.EqualValues(t, 3, out[3].Remaining)

	require.ErrorIs(t, r.DecideAtomic([]engine.Op{quota(keys[0], 5), quota(keys[1], 5)}, out), limiter.ErrCrossSlot)
	block := engine.Op{Code: engine.OpBlockEverywhere, Key: []byte(keys[0]), TTLNs: engine.Never}
	require.ErrorIs(t, r.DecideAtomic([]engine.Op{quota(keys[0], 5), block}, out), limiter.ErrCrossSlot)
	require.Zero(t, groups[0].atomic+groups[1].atomic)
	tagged := []engine.Op{quota("{"+keys[0]+"}a", 5), quota("{"+keys[0]+"}b", 7)}
	require.NoError(t, r.DecideAtomic(tagged, out))
	require.Equal(t, []int64{4, 6}, []int64{out[0].Remaining, out[1].Remaining})
}

// TestABlockEverywhereIsInEveryGroup checks that a block everywhere denies the keys of all groups that end in its key,
// and counts as one key. A block of the key alone replaces it in all groups.
func TestABlockEverywhereIsInEveryGroup(t *testing.T) {
	r, groups := newTest(t, 4)
	block := engine.Op{Code: engine.OpBlockEverywhere, Key: []byte("ip:1"), TTLNs: engine.Never, Text: []byte("abuse")}
	var keys []string
	for g := range groups {
		for i := 0; ; i++ {
			if key := fmt.Sprintf("r%d|ip:1", i); r.groupOf([]byte(key)) == g {
				keys = append(keys, key)
				break
			}
		}
	}
	allowed := func() (n int64) {
		for _, key := range keys {
			n += decide(t, r, quota(key, 100))[0].Allowed
		}
		return n
	}
	require.EqualValues(t, 4, allowed())
	// The decision before the block in the pipeline is allowed, and the one after it is denied.
	out := decide(t, r, quota(keys[1], 100), block, quota(keys[1], 100))
	require.Equal(t, []int64{1, 1, 0}, []int64{out[0].Allowed, out[1].Allowed, out[2].Allowed})
	require.Zero(t, allowed())
	require.Equal(t, []string{"ip:1"}, r.BlocksEverywhere().Keys())
	require.EqualValues(t, 5, r.Len(0), "four keys, and one block")
	var seen []string
	for cursor, more := uint64(0), true; more; more = cursor != 0 {
		cursor = r.Scan(cursor, 1, func(key []byte, _ engine.Algorithm) { seen = append(seen, string(key)) })
	}
	require.ElementsMatch(t, append(keys, "ip:1"), seen)

	plain := engine.Op{Code: engine.OpBlock, Key: []byte("ip:1"), TTLNs: engine.Never}
	require.Equal(t, engine.OK, decide(t, r, plain)[0].Status)
	require.Zero(t, allowed(), "a block of the key alone keeps its block everywhere")
	require.EqualValues(t, 5, r.Len(0))
	require.EqualValues(t, 1, decide(t, r, engine.Op{Code: engine.OpUnblock, Key: []byte("ip:1")})[0].Allowed)
	require.EqualValues(t, 4, allowed())
	require.EqualValues(t, 1, decide(t, r, quota("ip:1", 9))[0].Allowed, "both blocks are lifted")
	require.EqualValues(t, 0, decide(t, r, engine.Op{Code: engine.OpUnblock, Key: []byte("ip:1")})[0].Allowed)
}

// TestABlockThatMissesAGroup checks that the caller learns how many groups have a block, that the others get it later,
// and that a repetition brings them too.
func TestABlockThatMissesAGroup(t *testing.T) {
	r, groups := newTest(t, 2)
	block := engine.Op{Code: engine.OpBlockEverywhere, Key: []byte("ip:1"), TTLNs: engine.Never}
	groups[1].fail(limiter.ErrTryAgain)
	require.Equal(t, engine.Decision{Status: limiter.ErrSomeGroups.Status(), Allowed: 1, Limit: 2},
		decide(t, r, block)[0])
	groups[1].fail(nil)
	require.Equal(t, engine.OK, decide(t, r, block)[0].Status)
	groups[0].fail(limiter.ErrClusterDown)
	require.Equal(t, limiter.ErrClusterDown.Status(), decide(t, r, block)[0].Status)
}

// TestAGroupThatRefusesABlock checks that a block everywhere is not reported as done if one group has no memory for it.
func TestAGroupThatRefusesABlock(t *testing.T) {
	r, groups := newTest(t, 2)
	small := engine.NewTable(engine.Options{MaxMemoryBytes: 1 << 20, Shards: 1, WhenFull: engine.Deny})
	for i := 0; ; i++ {
		out := make([]engine.Decision, 1)
		op := engine.Op{Code: engine.OpBlock, Key: fmt.Append(nil, "full:", i), TTLNs: engine.Never,
			Text: make([]byte, engine.MaxReasonLen)}
		if small.Decide(at, []engine.Op{op}, out); out[0].Status == engine.OutOfMemory {
			break
		}
	}
	groups[1].table = small
	block := engine.Op{Code: engine.OpBlockEverywhere, Key: []byte("ip:1"), TTLNs: engine.Never}
	require.Equal(t, limiter.ErrSomeGroups.Status(), decide(t, r, block)[0].Status)
	require.Empty(t, small.BlocksEverywhere(at).Keys())
	require.Less(t, small.SharedVersion(), r.Group(0).SharedVersion(), "the group is behind")
	groups[1].table = engine.NewTable(engine.Options{})
	bringAllNow(r, groups)
	requireEqualGroups(t, groups)
}

// TestScanVisitsEveryKeyOnce: a scan goes through all groups with cursors that a JavaScript number can represent.
func TestScanVisitsEveryKeyOnce(t *testing.T) {
	for _, n := range []int{1, 2, 16} {
		r, _ := newTest(t, n)
		var ops []engine.Op
		for i := range 3000 {
			ops = append(ops, quota(fmt.Sprint("key", i), 10))
		}
		decide(t, r, ops...)
		seen, calls := map[string]int{}, 0
		for cursor, more := uint64(0), true; more; more = cursor != 0 {
			cursor = r.Scan(cursor, 10, func(key []byte, _ engine.Algorithm) { seen[string(key)]++ })
			require.Less(t, cursor, uint64(1)<<53)
			calls++
		}
		require.Len(t, seen, 3000, "%d groups", n)
		require.Greater(t, calls, n)
		again := 0
		r.Scan(1<<63, 10, func([]byte, engine.Algorithm) { again++ })
		require.Positive(t, again, "a cursor of no scan begins again")
	}
}

// TestReadsOfAllGroups: reads of one key ask its group, and reads of the tier add up all groups.
func TestReadsOfAllGroups(t *testing.T) {
	r, _ := newTest(t, 4)
	require.Nil(t, r.RandomKey(0))
	for g := range 4 {
		for i, key := range keysOf(r, g, 2) {
			for range g*2 + i + 1 {
				decide(t, r, quota(key, 100))
			}
			info, found := r.Inspect([]byte(key))
			require.True(t, found)
			require.EqualValues(t, g*2+i+1, info.Used)
		}
	}
	require.EqualValues(t, 8, r.Stats().Keys)
	require.EqualValues(t, 36, r.Stats().Admitted[engine.FixedWindow])
	require.NotNil(t, r.RandomKey(0))
	top := r.Top(engine.Admitted, 3)
	require.Len(t, top, 3)
	require.Equal(t, []int64{8, 7, 6}, []int64{top[0].Units, top[1].Units, top[2].Units})
}

// TestAReadNeedsItsGroupOnly checks that a read of a key works while another group has no leader.
func TestAReadNeedsItsGroupOnly(t *testing.T) {
	r, groups := newTest(t, 4)
	groups[2].fail(limiter.ErrClusterDown)
	require.ErrorIs(t, r.ReadIndex(), limiter.ErrClusterDown)
	for i := range groups {
		err := r.ReadIndexOf(hashslot.OfGroup(i, 4).Last)
		if i == 2 {
			require.ErrorIs(t, err, limiter.ErrClusterDown)
			continue
		}
		require.NoError(t, err)
	}
}

// TestANodeHasAnIdInEachGroup checks that the router knows a node by its address, because its incarnations in two
// groups have different ids.
func TestANodeHasAnIdInEachGroup(t *testing.T) {
	r, groups := newTest(t, 2)
	member := func(id, addr string) limiter.Member { return limiter.Member{ID: id, RaftAddr: addr, Voter: true} }
	groups[0].topology = limiter.Topology{Self: "a", Leader: "b",
		Nodes: []limiter.Member{member("a", "1"), member("b", "2")}}
	groups[1].topology = limiter.Topology{Self: "a~x", Leader: "a~x", LastLeader: "b~y",
		Nodes: []limiter.Member{member("a~x", "1"), member("b~y", "2")}}
	shown := r.Topology().Groups
	require.Equal(t, []string{"b", "a", "b"}, []string{shown[0].Leader, shown[1].Leader, shown[1].LastLeader})
	require.Equal(t, []string{"b", "a"}, []string{r.LeaderOf(0), r.LeaderOf(hashslot.Count - 1)})
	groups[1].mu.Lock()
	groups[1].topology.Leader = "b~y"
	groups[1].mu.Unlock()
	require.Equal(t, "b", r.LeaderOf(hashslot.Count-1), "a redirect must not wait for the next description")
	groups[1].mu.Lock()
	groups[1].topology.Leader = "a~x"
	groups[1].mu.Unlock()
	require.NoError(t, r.TransferLeadership("b"))
	require.Empty(t, groups[0].moved)
	require.Equal(t, []string{"b~y"}, groups[1].moved)
	require.NoError(t, r.TransferLeadership(""))
	require.Equal(t, []string{"b~y", ""}, groups[1].moved, "this node leads the second group alone")
}

// TestATransferToANodeThatAGroupLacks checks that a group which does not have the node is asked for this node, and
// refuses. An empty id would let it choose another node.
func TestATransferToANodeThatAGroupLacks(t *testing.T) {
	r, groups := newTest(t, 2)
	member := func(id, addr string) limiter.Member { return limiter.Member{ID: id, RaftAddr: addr, Voter: true} }
	groups[0].topology = limiter.Topology{Self: "a", Leader: "a",
		Nodes: []limiter.Member{member("a", "1"), member("c", "3")}}
	groups[1].topology = limiter.Topology{Self: "a", Leader: "a",
		Nodes: []limiter.Member{member("a", "1"), member("b", "2")}}
	require.NoError(t, r.TransferLeadership("c"))
	require.NoError(t, r.TransferGroup(1, "c"))
	require.Equal(t, []string{"c"}, groups[0].moved)
	require.Equal(t, []string{"c", "c"}, groups[1].moved)
}

// TestTheGroupsHaveAllKeys checks that the sizes of the groups add up to the size of the whole.
func TestTheGroupsHaveAllKeys(t *testing.T) {
	r, _ := newTest(t, 4)
	for i := range 20 {
		decide(t, r, quota(fmt.Sprint("key", i), 9))
	}
	decide(t, r, engine.Op{Code: engine.OpBlockEverywhere, Key: []byte("blocked"), TTLNs: int64(time.Hour)})
	sum := int64(0)
	for i := range 4 {
		sum += r.LenOf(hashslot.OfGroup(i, 4).First, 0)
	}
	require.EqualValues(t, 21, sum)
	require.Equal(t, r.Len(0), sum)
}

// TestTheLagOfANodeIsItsWorst checks that the topology shows the greatest lag of a node in any group.
func TestTheLagOfANodeIsItsWorst(t *testing.T) {
	r, groups := newTest(t, 4)
	for i, lag := range []uint64{3, 1, 700, 0} {
		id := fmt.Sprint("b~", i)
		groups[i].topology = limiter.Topology{Nodes: []limiter.Member{{ID: id, RaftAddr: "1", LagEntries: lag}}}
	}
	require.EqualValues(t, 700, r.Topology().Nodes[0].LagEntries)
	require.Len(t, r.Topology().Nodes, 1)
}

// TestNodesOfSomeGroupsOnly checks that the topology lists a node that joins or leaves the groups one by one. The node
// counts as a voter only while it votes in all groups.
func TestNodesOfSomeGroupsOnly(t *testing.T) {
	r, groups := newTest(t, 2)
	voters := func(ids ...string) (nodes []limiter.Member) {
		for _, id := range ids {
			nodes = append(nodes, limiter.Member{ID: id, RaftAddr: id + ":1", Voter: true})
		}
		return nodes
	}
	groups[0].topology.Nodes, groups[1].topology.Nodes = voters("a", "c"), voters("a", "b")
	got := map[string]bool{}
	for _, m := range r.view().Nodes {
		got[m.ID] = m.Voter
	}
	require.Equal(t, map[string]bool{"a": true, "b": false, "c": false}, got)
	require.True(t, groups[0].topology.Nodes[1].Voter, "the description of the group must not change")
	require.ErrorContains(t, r.RemoveFromGroup("a", 2), "2 groups")
	require.ErrorContains(t, r.RemoveFromGroup("c", 1), `no node "c" in group 1`)
}

// removed is a group that removes a node, and answers that it did not.
type removed struct{ *fakeGroup }

func (g removed) RemoveNode(string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.topology.Nodes = nil
	return limiter.ErrUnknownOutcome
}

// lagging is a group that learns its members when it looks at them.
type lagging struct {
	*fakeGroup
	members []limiter.Member
}

func (g lagging) LookAtMembers() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.topology.Nodes = g.members
}

func (g lagging) RemoveNode(string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.members[0].ID = "removed"
	return nil
}

// TestARemovalSeesANodeThatHasJustJoined checks that a removal finds a node in a group that the node joined after this
// node's last look at the members.
func TestARemovalSeesANodeThatHasJustJoined(t *testing.T) {
	r, groups := newTest(t, 2)
	late := lagging{groups[1], []limiter.Member{{ID: "c", RaftAddr: "c:1"}}}
	r.groups.Store(liveGroups(groups[0], late))
	require.NoError(t, r.RemoveNode("c"))
	require.Equal(t, "removed", late.members[0].ID)
}

// A removal whose answer was lost is not reported as a failure.
func TestALostAnswerToARemoval(t *testing.T) {
	r, groups := newTest(t, 2)
	groups[1].topology.Nodes = []limiter.Member{{ID: "c", RaftAddr: "c:1"}}
	r.groups.Store(liveGroups(groups[0], removed{groups[1]}))
	require.NoError(t, r.RemoveNode("c"), "no group has the node any more")
}

// TestDrainOutlastsDecisions checks that a group that ends closes after the decisions that it has begun.
func TestDrainOutlastsDecisions(t *testing.T) {
	for _, age := range []time.Duration{0, 2 * time.Second, time.Minute} {
		require.Greater(t, drain(age), age)
		require.GreaterOrEqual(t, drain(age), leastDrain)
	}
}

// TestGroupsShareAHost checks that the groups of a process share its host, with the window and the port.
func TestGroupsShareAHost(t *testing.T) {
	n := &Node{options: raftstore.Options{Groups: 2}, nodes: make([]atomic.Pointer[raftstore.Node], 2)}
	n.host = &host.Host{}
	require.Same(t, n.host, n.ofGroup(0).Host)
	require.Same(t, n.host, n.ofGroup(1).Host)
}

// countingGroup reports counters.
type countingGroup struct {
	Group
	counters limiter.Consensus
}

func (g countingGroup) Consensus() limiter.Consensus { return g.counters }

// TestConsensusIsASum checks that a host reports the entries of all groups.
func TestConsensusIsASum(t *testing.T) {
	r := &Router{}
	r.groups.Store(liveGroups(
		countingGroup{counters: limiter.Consensus{Entries: 1, EntryOps: 20}},
		countingGroup{counters: limiter.Consensus{Entries: 2, EntryOps: 300}},
	))
	sum := r.Consensus()
	require.EqualValues(t, 3, sum.Entries)
	require.EqualValues(t, 320, sum.EntryOps)
}

// startingGroup starts calls. Its calls end when both groups of a test have started one.
type startingGroup struct {
	*fakeGroup
	started *sync.WaitGroup
}

func (g startingGroup) Start(ops []engine.Op, out []engine.Decision) (wait func() error, started bool) {
	g.started.Done()
	return func() error {
		g.started.Wait()
		return g.fakeGroup.Decide(ops, out)
	}, true
}

// TestGroupsStartTogether checks that a pipeline is started in all groups before the router waits for one of them, and
// that a group fails alone.
func TestGroupsStartTogether(t *testing.T) {
	r, fakes := newTest(t, 2)
	var started sync.WaitGroup
	r.groups.Store(liveGroups(startingGroup{fakes[0], &started}, startingGroup{fakes[1], &started}))
	ops := []engine.Op{quota(keysOf(r, 0, 1)[0], 5), quota(keysOf(r, 1, 1)[0], 7)}
	started.Add(2)
	out := decide(t, r, ops...)
	require.EqualValues(t, 4, out[0].Remaining)
	require.EqualValues(t, 6, out[1].Remaining)
	fakes[1].fail(limiter.ErrOverloaded)
	started.Add(2)
	out = decide(t, r, ops...)
	require.EqualValues(t, 3, out[0].Remaining)
	require.Equal(t, limiter.ErrOverloaded.Status(), out[1].Status)
}
