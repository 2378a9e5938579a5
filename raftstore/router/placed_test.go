package router_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/freeport"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore"
	"github.com/weir-project/weir/raftstore/internal/identity"
	"github.com/weir-project/weir/raftstore/router"
)

func withReplicas(r int) func(*raftstore.Options) {
	return func(o *raftstore.Options) { o.Replicas = r }
}

// placed waits until every group has so many replicas that vote, and a leader, as every node sees it.
func (c *tier) placed(replicas int) {
	c.t.Helper()
	var last string
	ready := func() bool {
		for _, n := range c.nodes {
			if n == nil {
				continue
			}
			for i, g := range n.Topology().Groups {
				voters := 0
				for _, m := range g.Members {
					if m.Voter {
						voters++
					}
				}
				if g.Leader == "" || voters != replicas || len(g.Members) != replicas {
					last = fmt.Sprintf("%s sees group %d as %+v", n.Topology().Self, i, g)
					return false
				}
			}
		}
		return true
	}
	require.True(c.t, assert.Eventually(c.t, ready, patience, 20*time.Millisecond), last)
}

func someKeys(n int) (keys []string) {
	for i := range n {
		keys = append(keys, fmt.Sprint("key", i))
	}
	return keys
}

// TestGroupsOnAPartOfTheNodes checks that every node of a tier answers for every key, wherever its group is, and that
// each node stores the keys of its groups only.
func TestGroupsOnAPartOfTheNodes(t *testing.T) {
	const size, groups, replicas = 5, 8, 3
	c := newTier(t, size, groups, withReplicas(replicas))
	c.placed(replicas)
	keys := someKeys(64)
	for _, n := range c.nodes {
		require.EqualValues(t, len(keys), c.take(n, keys))
	}
	stored := int64(0)
	for _, n := range c.nodes {
		c.counts(n, keys, size)
		var all int64
		var found []string
		var one []byte
		c.read(n, func(state limiter.State) {
			all, found, one = state.Len(0), scanned(state), state.RandomKey(0)
		})
		require.EqualValues(t, len(keys), all, "the whole tier")
		require.Len(t, found, len(keys))
		require.NotNil(t, one)
		stored += n.Stats().Keys
	}
	require.EqualValues(t, len(keys)*replicas, stored-extra(c, keys), "each key has so many replicas")
	policy := engine.Op{Code: engine.OpPolicy, Key: []byte("p"), Policy: &engine.PolicyChange{
		Do: engine.PolicySet, Own: true,
		Terms: &engine.Policy{Limits: []engine.PolicyLimit{{Limit: quota("", 1000).Limit}}}}}
	decided(t, c.nodes[0], policy)
	var checks []engine.Op
	for _, key := range keys {
		checks = append(checks, engine.Op{Code: engine.OpCheck, Key: []byte(key), Text: []byte("p"), Cost: 1})
	}
	for _, n := range c.nodes {
		decided(t, n, checks...)
	}
	require.Eventually(t, func() bool { return c.nodes[4].Clear() == nil }, patience, 10*time.Millisecond)
	var left int64
	c.read(c.nodes[0], func(state limiter.State) { left = state.Len(0) })
	require.Zero(t, left)
}

// extra returns how many of the keys the nodes store that only follow the first group.
func extra(c *tier, keys []string) (n int64) {
	for _, node := range c.nodes {
		t := node.Topology()
		first := t.Groups[0]
		if slices.ContainsFunc(first.Members, func(m limiter.GroupMember) bool { return m.ID == t.Self }) {
			continue
		}
		for _, key := range keys {
			if t.NumberOf(engine.SlotOf([]byte(key))) == 0 {
				n++
			}
		}
	}
	return n
}

func scanned(s limiter.State) (keys []string) {
	for cursor, more := uint64(0), true; more; more = cursor != 0 {
		cursor = s.Scan(cursor, 10, func(key []byte, _ engine.Algorithm) { keys = append(keys, string(key)) })
	}
	return keys
}

// move moves a replica, and repeats each step until the move is done.
func (c *tier) move(by *router.Node, group int, from, to string) {
	c.t.Helper()
	var last string
	done := assert.Eventually(c.t, func() bool {
		m, err := by.MoveReplica(group, from, to)
		last = fmt.Sprint(m, err)
		return m.Done && err == nil
	}, patience, 20*time.Millisecond)
	require.True(c.t, done, "group %d from %s to %s: %s", group, from, to, last)
}

// takeOnce takes a unit of each key once, and returns how many certainly count, and how many may.
func takeOnce(n *router.Node, keys []string) (allowed, perhaps int64) {
	ops, out := []engine.Op{}, make([]engine.Decision, len(keys))
	for _, key := range keys {
		ops = append(ops, quota(key, 1_000_000))
	}
	err := n.Decide(ops, out)
	for i := range out {
		outcome := limiter.OutcomeOfStatus(out[i].Status)
		if err != nil {
			outcome = limiter.OutcomeOf(err)
		}
		switch {
		case outcome == 0 && out[i].Status == engine.OK:
			allowed += out[i].Allowed
		case outcome.MayBeDone():
			perhaps++
		}
	}
	return allowed, perhaps
}

// TestEveryReplicaMoves checks that each replica of a tier moves to another node while clients decide, and that every
// unit counts once.
func TestEveryReplicaMoves(t *testing.T) {
	const size, groups, replicas = 5, 4, 3
	c := newTier(t, size, groups, withReplicas(replicas))
	c.placed(replicas)
	keys := someKeys(32)
	stop := make(chan struct{})
	var client sync.WaitGroup
	var total, unknown int64
	client.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				allowed, perhaps := takeOnce(c.nodes[i%size], keys)
				total, unknown = total+allowed, unknown+perhaps
			}
		}
	})
	stopOnce := sync.OnceFunc(func() { close(stop) })
	defer client.Wait()
	defer stopOnce()
	for group, g := range c.nodes[0].Topology().Groups {
		var has []string
		for _, m := range g.Members {
			has = append(has, m.ID)
		}
		for i := range replicas {
			to := slices.IndexFunc(c.opts, func(o raftstore.Options) bool { return !slices.Contains(has, o.NodeID) })
			c.move(c.nodes[(group+i)%size], group, has[i], c.opts[to].NodeID)
			has[i] = c.opts[to].NodeID
		}
	}
	stopOnce()
	client.Wait()
	c.placed(replicas)
	sum := int64(0)
	for _, units := range c.used(c.nodes[0], keys) {
		sum += units
	}
	t.Logf("%d units during %d moves, %d with an unknown outcome", total, groups*replicas, unknown)
	require.GreaterOrEqual(t, sum, total)
	require.LessOrEqual(t, sum, total+unknown)
}

// TestAMoveThatHasJustBegunIsSeen checks that no node takes a move for undone that another node has just begun.
func TestAMoveThatHasJustBegunIsSeen(t *testing.T) {
	const size, groups, replicas = 5, 8, 3
	c := newTier(t, size, groups, withReplicas(replicas))
	c.placed(replicas)
	for group := range groups {
		g := c.nodes[0].Topology().Groups[group]
		var has []string
		for _, m := range g.Members {
			has = append(has, m.ID)
		}
		to := slices.IndexFunc(c.opts, func(o raftstore.Options) bool { return !slices.Contains(has, o.NodeID) })
		from, target := has[0], c.opts[to].NodeID
		last := ""
		require.True(t, assert.Eventually(t, func() bool {
			m, err := c.nodes[group%size].MoveReplica(group, from, target)
			last = fmt.Sprint(m, err)
			return err == nil && m.Step != "" && !m.Done // a call that failed may have opened the replica
		}, patience, time.Millisecond), last)
		m, err := c.nodes[(group+1+group/size)%size].MoveReplica(group, target, from)
		require.False(t, err == nil && m.Done, "group %d: the replica on %s was just added", group, target)
		c.move(c.nodes[0], group, target, from)
	}
	c.placed(replicas)
}

// TestATargetThatRestartsJoins checks that a new replica goes on to join its group after a restart of its node.
func TestATargetThatRestartsJoins(t *testing.T) {
	const size, groups, replicas = 5, 4, 3
	c := newTier(t, size, groups, withReplicas(replicas))
	c.placed(replicas)
	for group := 1; group < groups; group++ {
		var has []string
		for _, m := range c.nodes[0].Topology().Groups[group].Members {
			has = append(has, m.ID)
		}
		to := slices.IndexFunc(c.opts, func(o raftstore.Options) bool { return !slices.Contains(has, o.NodeID) })
		last := ""
		require.True(t, assert.Eventually(t, func() bool {
			m, err := c.nodes[(to+1)%size].MoveReplica(group, has[0], c.opts[to].NodeID)
			last = fmt.Sprint(m, err)
			return err == nil && m.Step != ""
		}, patience, time.Millisecond), last)
		c.stop(to)
		c.restart(to)
		c.move(c.nodes[(to+1)%size], group, has[0], c.opts[to].NodeID)
		c.placed(replicas)
	}
}

// TestAReplicaLearnsThatItsGroupMovedAway checks that a node which was down while all replicas of a group moved to others
// gives its own up, and sends its clients there.
func TestAReplicaLearnsThatItsGroupMovedAway(t *testing.T) {
	const size, groups, replicas = 6, 2, 3
	c := newTier(t, size, groups, withReplicas(replicas))
	c.placed(replicas)
	var from, to []int
	for i := range c.opts {
		if slices.ContainsFunc(c.nodes[0].Topology().Groups[1].Members,
			func(m limiter.GroupMember) bool { return m.ID == c.opts[i].NodeID }) {
			from = append(from, i)
		} else {
			to = append(to, i)
		}
	}
	c.stop(from[0])
	by := c.nodes[to[0]]
	for i := range from {
		c.move(by, 1, c.opts[from[i]].NodeID, c.opts[to[i]].NodeID)
	}
	for _, i := range from[1:] { // these tell nothing any more
		away := func() bool { return c.nodes[i].Topology().Groups[1].Away }
		require.Eventually(t, away, patience, 20*time.Millisecond)
		c.stop(i)
		c.restart(i)
	}
	c.restart(from[0])
	c.placed(replicas)
	for _, i := range from {
		g := c.nodes[i].Topology().Groups[1]
		require.Empty(t, g.Ended)
		require.True(t, g.Away)
	}
}

// TestANodeWithoutReplicasIsRemoved checks that a node which has no replica of another group than the first one ends
// when it is removed, and does not start again.
func TestANodeWithoutReplicasIsRemoved(t *testing.T) {
	const size, groups, replicas = 3, 2, 1
	c := newTier(t, size, groups, withReplicas(replicas))
	c.placed(replicas)
	placed := c.nodes[0].Topology().Groups
	i := slices.IndexFunc(c.opts, func(o raftstore.Options) bool {
		return !placed[0].Has(o.NodeID) && !placed[1].Has(o.NodeID)
	})
	require.GreaterOrEqual(t, i, 0)
	by, id := c.nodes[(i+1)%size], c.opts[i].NodeID
	c.removed(func() error { return by.RemoveNode(id) })
	select {
	case err := <-c.fatal:
		require.ErrorIs(t, err, raftstore.ErrRemoved)
	case <-time.After(patience):
		require.Fail(t, "the removed node goes on")
	}
	c.stop(i)
	o := c.opts[i]
	o.Listener = listen(t, o.RaftAddr)
	_, err := router.Open(o)
	require.ErrorIs(t, err, raftstore.ErrRemoved)
}

// TestALostReplicaIsSilent checks that a replica counts as down when its node has lost the disk and follows the first
// group again. Every node sees it, also those without a replica of the group.
func TestALostReplicaIsSilent(t *testing.T) {
	const size, groups, replicas, last = 4, 2, 3, 4
	c := newTier(t, size, groups, withReplicas(replicas))
	c.placed(replicas)
	o := c.opts[0]
	o.NodeID, o.DataDir, o.RaftAddr = "late", t.TempDir(), freeport.Addr(t)
	o.Listener = listen(t, o.RaftAddr)
	late, err := router.Open(o)
	require.NoError(t, err)
	c.nodes, c.opts = append(c.nodes, late), append(c.opts, o)
	require.Eventually(t, func() bool {
		m := c.nodes[0].Topology().Member("late")
		return m != nil && m.Up
	}, patience, 20*time.Millisecond)
	c.move(c.nodes[0], 1, c.nodes[0].Topology().Groups[1].Members[0].ID, "late")
	c.placed(replicas)
	c.stop(last)
	c.opts[last].DataDir = t.TempDir()
	c.restart(last)
	for i, n := range c.nodes[:last] {
		require.Eventually(t, func() bool {
			t := n.Topology()
			m := t.Member("late")
			return m != nil && m.Up && t.VotersUp(&t.Groups[1]) == replicas-1 && t.VotersUp(&t.Groups[0]) == replicas
		}, patience, 20*time.Millisecond, "node %d", i)
	}
}

// TestLeadersOfATierAreEven checks that the nodes lead the same number of groups, or one more, after the founding and
// after a node has stopped.
func TestLeadersOfATierAreEven(t *testing.T) {
	const size, groups, replicas = 5, 8, 3
	c := newTier(t, size, groups, withReplicas(replicas))
	c.placed(replicas)
	c.even("after the founding")
	c.stop(1)
	c.even("after a node has stopped")
}

// even waits until the leaders are even, as every node sees it.
func (c *tier) even(when string) {
	c.t.Helper()
	began, last := time.Now(), ""
	require.True(c.t, assert.Eventually(c.t, func() bool {
		for _, n := range c.nodes {
			if n == nil {
				continue
			}
			t, least, most := n.Topology(), math.MaxInt, 0
			for i, m := range t.Nodes {
				if c.nodes[i] != nil {
					least, most = min(least, t.LedBy(m.ID)), max(most, t.LedBy(m.ID))
				}
			}
			if last = fmt.Sprintf("%s sees %d to %d", t.Self, least, most); most > least+1 || t.Leaderless() > 0 {
				return false
			}
		}
		return true
	}, patience, 20*time.Millisecond), "%s: %s", when, last)
	c.t.Logf("even %v %s", time.Since(began).Round(time.Millisecond), when)
}

// TestABackupFromAnyNode checks that a node backs up the whole tier, also the groups that it lacks, and that a cluster
// restored from the backup with replicas spreads by moves.
func TestABackupFromAnyNode(t *testing.T) {
	const size, groups, replicas = 4, 4, 1
	c := newTier(t, size, groups, withReplicas(replicas))
	c.placed(replicas)
	keys := someKeys(64)
	c.take(c.nodes[0], keys)
	for _, n := range c.nodes {
		require.Eventually(t, func() bool { return n.ReadIndex() == nil }, patience, 10*time.Millisecond)
		r := restoredWith(t, backUp(t, n), 0, replicas)
		require.EqualValues(t, len(keys), r.Len(0))
		for _, g := range r.Topology().Groups {
			require.Len(t, g.Members, 1)
			require.False(t, g.Away)
		}
	}
}

// TestAReplicaKeepsItsLogBeforeItHasJoined checks that a restart keeps the log of a replica that has voted, or has
// stored entries, and has not noted yet that it is a member.
func TestAReplicaKeepsItsLogBeforeItHasJoined(t *testing.T) {
	const groups = 2
	c := newTier(t, 1, groups, withReplicas(1))
	c.placed(1)
	require.EqualValues(t, 1, c.take(c.nodes[0], []string{keyIn(1, groups)}))
	c.stop(0)
	dir := raftstore.GroupDir(c.opts[0].DataDir, 1)
	id, _, err := identity.Read(vfs.Default, dir)
	require.NoError(t, err)
	id.Joined = false
	require.NoError(t, identity.Write(vfs.Default, dir, id))
	c.restart(0)
	c.placed(1)
	c.counts(c.nodes[0], []string{keyIn(1, groups)}, 1)
}

// TestABackupOfManyGroupsElsewhere checks that a node backs up a tier of which it has few groups.
func TestABackupOfManyGroupsElsewhere(t *testing.T) {
	const groups, replicas = 16, 1
	c := newTier(t, 2, groups, withReplicas(replicas))
	c.placed(replicas)
	for range 3 { // each closes what it has opened
		backUp(t, c.nodes[0])
	}
}

// TestAGroupReleasesNoReplicaThatItNeeds checks that the leader of a group refuses to remove a replica if too few are
// left: two moves at the same time may have looked at the same members.
func TestAGroupReleasesNoReplicaThatItNeeds(t *testing.T) {
	const size, groups, replicas = 3, 2, 3
	c := newTier(t, size, groups, withReplicas(replicas))
	c.placed(replicas)
	leads := func(n *router.Node) bool { return n.Group(1).Topology().Leads() }
	for _, o := range c.opts {
		last := error(nil)
		require.True(t, assert.Eventually(t, func() bool {
			leader := slices.IndexFunc(c.nodes, leads)
			if leader < 0 {
				return false
			}
			last = c.nodes[leader].Group(1).ReleaseReplica(o.NodeID)
			return last != nil &&
				last.Error() == "the group has 3 replicas, and shall have 3: give it another one first"
		}, patience, 10*time.Millisecond), "%s: %v", o.NodeID, last)
	}
	c.placed(replicas)
}

// TestAMoveLosesNoReplica checks that a move to a node that has a replica already takes none away.
func TestAMoveLosesNoReplica(t *testing.T) {
	const size, groups, replicas = 4, 2, 3
	c := newTier(t, size, groups, withReplicas(replicas))
	c.placed(replicas)
	for group, g := range c.nodes[0].Topology().Groups {
		last := error(nil)
		require.True(t, assert.Eventually(t, func() bool {
			_, last = c.nodes[group].MoveReplica(group, g.Members[0].ID, g.Members[1].ID)
			return last != nil && strings.Contains(last.Error(), "would have 2 replicas, and shall have 3")
		}, patience, 20*time.Millisecond), "%v", last)
	}
	c.placed(replicas)
}

// TestATransferToANodeWithoutReplicas checks that nobody is told that a node without a vote got the leadership.
func TestATransferToANodeWithoutReplicas(t *testing.T) {
	const size, groups, replicas = 4, 2, 3
	c := newTier(t, size, groups, withReplicas(replicas))
	c.placed(replicas)
	for group, g := range c.nodes[0].Topology().Groups {
		to := slices.IndexFunc(c.opts, func(o raftstore.Options) bool { return !g.Has(o.NodeID) })
		if g.Has("n0") && to > 0 {
			c.move(c.nodes[1], group, "n0", c.opts[to].NodeID)
		}
	}
	none := func() bool { return c.nodes[1].Topology().ReplicasOn("n0") == 0 }
	require.Eventually(t, none, patience, 20*time.Millisecond)
	require.EqualError(t, c.nodes[1].TransferLeadership("n0"), `node "n0" has no replica that votes`)
	require.EqualError(t, c.nodes[1].TransferGroup(0, "n0"), `node "n0" does not vote in this group`)
	given := func() bool { return c.nodes[0].TransferLeadership("n1") == nil }
	require.Eventually(t, given, patience, 10*time.Millisecond)
}
