package raftstore

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/internal/fsm"
	"github.com/weir-project/weir/raftstore/internal/host"
	"github.com/weir-project/weir/raftstore/internal/leadership"
	"github.com/weir-project/weir/raftstore/internal/membership"
	"github.com/weir-project/weir/raftstore/peer"
	"github.com/weir-project/weir/raftstore/wire"
)

// fakeFirst is a first group whose copy on this node has the given members. Its leader gives the answers.
type fakeFirst struct {
	members []string
	answers map[string]error
	addrs   []string
}

func (f *fakeFirst) Joined() bool            { return true }
func (f *fakeFirst) Members() []string       { return f.members }
func (f *fakeFirst) Addrs() []string         { return f.addrs }
func (f *fakeFirst) Belongs(id string) error { return f.answers[id] }

// TestOnlyOutsidersAreRemoved checks which members the leader of a group removes: those that the leader of the first
// group does not have. A copy of the first group that lags, and an answer that does not come, remove nobody.
func TestOnlyOutsidersAreRemoved(t *testing.T) {
	for name, c := range map[string]struct {
		members []string
		answer  error
		stays   bool
	}{
		"it was removed":                    {[]string{"a"}, failure.ErrRemovedID, false},
		"it joins, and the copy lags":       {[]string{"a"}, nil, true},
		"the first group has no leader":     {[]string{"a"}, limiter.ErrClusterDown, true},
		"the copy lags behind the removal":  {[]string{"a", "b"}, failure.ErrRemovedID, true}, // until it has caught up
		"the first group has ended here":    {nil, failure.ErrRemovedID, true},
		"the first group has another of it": {[]string{"a", "b~1"}, nil, true},
		"the first group has replaced it":   {[]string{"a", "b~1"}, failure.ErrRemovedID, false},
	} {
		t.Run(name, func(t *testing.T) {
			n := newBareNode(t)
			n.configure(t, "a")
			n.leads(t)
			require.NoError(t, n.raft.AddNonvoter("b", "b:1", 0, time.Second).Error())
			n.membership.First = &fakeFirst{members: c.members, answers: map[string]error{"b": c.answer}}
			n.membership.RemoveOutsiders()
			n.own.End()
			require.Equal(t, c.stays, n.raft.Server("b") != nil)
			require.NotNil(t, n.raft.Server("a"))
		})
	}
}

// TestALateJoinIsRefused checks that the leader of a group takes in a node that asks only while the first group has it.
// The refusal is not ErrRemovedID, for which the node would take another id.
func TestALateJoinIsRefused(t *testing.T) {
	n := newBareNode(t)
	n.configure(t, "a")
	n.leads(t)
	first := &fakeFirst{answers: map[string]error{"b": failure.ErrRemovedID}}
	n.membership.First = first
	join := func() error {
		return n.membership.AddNonvoter(peer.Identity{NodeID: "b"},
			membership.Joining{NodeID: "b", RaftAddr: "b:1", Format: n.own.Options.Format})
	}
	err := join()
	require.ErrorContains(t, err, "the first group does not have node")
	require.NotErrorIs(t, err, failure.ErrRemovedID)
	first.answers["b"] = limiter.ErrClusterDown
	require.ErrorIs(t, join(), limiter.ErrTryAgain)
	require.Nil(t, n.raft.Server("b"))
	first.answers["b"] = nil
	require.NoError(t, join())
	require.NotNil(t, n.raft.Server("b"))
}

// TestTheFirstGroupReplacesAnIncarnation checks the join of a node whose other incarnation is in the group. The leader
// removes that incarnation only if the first group has replaced it by the one that asks.
func TestTheFirstGroupReplacesAnIncarnation(t *testing.T) {
	for name, c := range map[string]struct {
		first    []string
		replaced bool
	}{
		"it was replaced":             {[]string{"a", "b~1"}, true},
		"the earlier one asks late":   {[]string{"a", "b"}, false},
		"the copy lags":               {[]string{"a"}, false},
		"the first group still has b": {[]string{"a", "b", "b~1"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			n := newBareNode(t)
			n.configure(t, "a")
			n.leads(t)
			require.NoError(t, n.raft.AddNonvoter("b", "b:1", 0, time.Second).Error())
			n.membership.First = &fakeFirst{members: c.first}
			err := n.membership.AddNonvoter(peer.Identity{NodeID: "b~1"}, membership.Joining{
				NodeID: "b~1", RaftAddr: "b:1", Format: n.own.Options.Format, KeepsPromises: true,
			})
			require.ErrorIs(t, err, limiter.ErrTryAgain)
			require.Equal(t, c.replaced, n.raft.Server("b") == nil)
		})
	}
}

// TestARemovedNodeGetsNoVote checks that the leader promotes no member that the first group does not have.
func TestARemovedNodeGetsNoVote(t *testing.T) {
	for _, answer := range []error{failure.ErrRemovedID, limiter.ErrClusterDown, nil} {
		n := newBareNode(t)
		n.hear("b", 1000, 0)
		n.configure(t, "a")
		n.leads(t)
		require.NoError(t, n.raft.AddNonvoter("b", "b:1", 0, time.Second).Error())
		require.Eventually(t, func() bool { return n.fsm.Configuration() == n.raft.LastIndex() },
			20*time.Second, time.Millisecond)
		n.membership.First = &fakeFirst{answers: map[string]error{"b": answer}}
		n.membership.Promote()
		votes := func() bool { return n.raft.Server("b").Suffrage == raft.Voter }
		if answer == nil { // with a vote for b, this node alone is no majority, and the change does not end
			require.Eventually(t, votes, 20*time.Second, time.Millisecond)
			continue
		}
		n.own.End()
		require.False(t, votes(), "%v", answer)
	}
}

// TestBelongs checks what the leader of the first group answers. It answers that a node does not belong only if it led
// during the whole question.
func TestBelongs(t *testing.T) {
	n := newBareNode(t)
	require.ErrorIs(t, n.Belongs("a"), limiter.ErrClusterDown)
	n.configure(t, "a")
	r := n.leads(t)
	n.fsm.Committed.Store(nil)
	n.membership.ReadIndex = func() error { return nil }
	require.ErrorIs(t, n.Belongs("b"), limiter.ErrTryAgain, "no configuration is known")
	n.fsm.Committed.Store(&fsm.Configuration{Servers: n.raft.Servers()})
	require.NoError(t, n.Belongs("a"))
	require.NoError(t, n.Belongs("a~1"), "another incarnation of the node")
	require.ErrorIs(t, n.Belongs("b"), failure.ErrRemovedID)
	n.fsm.State.RemovedIDs = []string{"c"}
	n.fsm.Committed.Store(&fsm.Configuration{Servers: []raft.Server{{ID: "a"}, {ID: "c~1"}}})
	require.NoError(t, n.Belongs("c~2"), "an incarnation in another group")
	require.ErrorIs(t, n.Belongs("c"), failure.ErrRemovedID, "c~1 has replaced it")
	n.membership.ReadIndex = func() error { return limiter.ErrTryAgain }
	require.ErrorIs(t, n.Belongs("b"), limiter.ErrTryAgain)
	n.membership.ReadIndex = func() error {
		n.leadership.Current.Store(&leadership.Term{Number: r.Number + 1})
		return nil
	}
	require.ErrorIs(t, n.Belongs("b"), limiter.ErrNotLeader)
}

// TestANodeThatTheFirstGroupLacksFoundsNoOther checks that a founder of a group leaves out a node that has not joined
// the first group. Otherwise the group would have a member that its leader must remove.
func TestANodeThatTheFirstGroupLacksFoundsNoOther(t *testing.T) {
	n := newBareNode(t)
	found := []host.Status{
		{NodeID: "b", RaftAddr: "b:1", Pristine: true}, {NodeID: "c", RaftAddr: "c:1", Pristine: true},
	}
	founders, err := n.membership.Founders(found)
	require.NoError(t, err)
	require.Len(t, founders, 3)
	n.membership.First = &fakeFirst{members: []string{"a", "c"}}
	founders, err = n.membership.Founders(found)
	require.NoError(t, err)
	require.Equal(t, []raft.Server{n.membership.Server(), {ID: "c", Address: "c:1"}}, founders)
}

// TestAllFoundersChooseTheSameVoters checks that nodes which found a cluster with --replicas around each other, because
// their orders of --join differ, found it with the same voters, of which the founder is one. Otherwise two nodes could
// lead the first group in one term.
func TestAllFoundersChooseTheSameVoters(t *testing.T) {
	ids := []string{"a", "b", "c", "d", "e", "f"}
	addr := func(id string) string { return id + ":1" }
	votersAt := func(self int, first string, expect int) (voters []string, founder string) {
		n := newBareNodeCalled(t, ids[self])
		n.membership.Replicas, n.membership.Groups, n.membership.Expect = 3, 4, expect
		n.membership.JoinAddrs = []string{addr(first)}
		var found []host.Status
		for _, id := range ids {
			if id != first {
				n.membership.JoinAddrs = append(n.membership.JoinAddrs, addr(id))
			}
			if id != ids[self] {
				found = append(found, host.Status{NodeID: id, RaftAddr: addr(id), Pristine: true,
					Groups: wire.CountGroups(4), Replicas: 3, Format: n.own.Options.Format})
			}
		}
		servers, err := n.membership.Founders(found)
		require.NoError(t, err)
		for _, s := range servers {
			if s.Suffrage == raft.Voter {
				voters = append(voters, string(s.ID))
			}
		}
		slices.Sort(voters)
		return voters, strings.TrimSuffix(n.membership.Founder(servers), ":1")
	}
	want, _ := votersAt(0, "a", len(ids))
	require.Len(t, want, 3)
	for self, id := range ids {
		voters, founder := votersAt(self, id, len(ids))
		require.Equal(t, want, voters, "at %s, which is the first one of its own --join", id)
		require.Contains(t, voters, founder)
		for _, first := range ids { // some nodes may not have answered: the first one founds
			voters, founder = votersAt(self, first, len(ids)-1)
			require.Equal(t, first, founder)
			require.Contains(t, voters, first)
		}
	}
}

// TestANodeAsksTheMembersOfTheFirstGroup checks that a node which joined the first group asks its members for the leader
// of another group, if no node of --join answers. All of these may have been removed. It founds nothing with them.
func TestANodeAsksTheMembersOfTheFirstGroup(t *testing.T) {
	asked := make(chan string, 10)
	n := newBareNode(t)
	n.own.Port = deafPort(t, asked)
	n.membership.JoinAddrs, n.membership.Expect = []string{"a:1", "b:1"}, 2
	n.membership.First = &fakeFirst{members: []string{"a", "c"}, addrs: []string{"a:1", "c:1"}}
	require.ErrorContains(t, n.membership.TryJoin(), "found 1 of 2 nodes of --join")
	require.True(t, n.membership.Pristine(), "the node must not have founded the group")
	close(asked)
	var addrs []string
	for addr := range asked {
		addrs = append(addrs, addr)
	}
	require.Equal(t, []string{"b:1", "c:1"}, addrs)
}

// TestNoReplicaFoundsItsGroupAgain checks that a node of a cluster with --replicas founds no group alone, when it knows no
// other node yet. It also checks that the first group does not take a founder back that has lost its disk: the founder
// would found its groups again.
func TestNoReplicaFoundsItsGroupAgain(t *testing.T) {
	n := newBareNode(t)
	n.membership.Replicas, n.membership.First = 3, &fakeFirst{members: []string{"a"}}
	require.ErrorContains(t, n.membership.TryJoin(), "no other node is known yet")
	require.True(t, n.membership.Pristine(), "the node must not have founded the group")

	n = newBareNode(t)
	n.configure(t, "a")
	n.leads(t)
	n.membership.Replicas = 1
	n.fsm.State.Founding.Placed = [][]string{{"a"}, {"b"}}
	for _, id := range []string{"b", "c"} {
		require.NoError(t, n.raft.AddNonvoter(raft.ServerID(id), raft.ServerAddress(id+":1"), 0, time.Second).Error())
	}
	join := func(id string, invited bool) error {
		return n.membership.AddNonvoter(peer.Identity{NodeID: id}, membership.Joining{
			NodeID: id, RaftAddr: id + ":1", Format: n.own.Options.Format, KeepsPromises: true, Invited: invited,
		})
	}
	require.NoError(t, join("b", true), "a founder that has its disk")
	require.ErrorIs(t, join("b", false), failure.ErrLostState)
	require.NoError(t, join("c", false), "no founder: it asks again, because the answer was lost")
}

// TestReplicasJoinOnOrder checks that a group on a part of the nodes takes a replica in only on an order, and one more
// than it shall have at most. A replica whose move was undone while its node was down does not join later.
func TestReplicasJoinOnOrder(t *testing.T) {
	n := newBareNode(t)
	n.configure(t, "a")
	n.leads(t)
	n.membership.Replicas, n.membership.First = 1, &fakeFirst{members: []string{"a", "b", "c"}}
	join := func() error {
		return n.membership.AddNonvoter(peer.Identity{NodeID: "b~1"},
			membership.Joining{NodeID: "b~1", RaftAddr: "b:1", Format: n.own.Options.Format, KeepsPromises: true})
	}
	add := func(id, addr string) error {
		return n.membership.Execute(membership.Order{What: "add", ID: id, Addr: addr})
	}
	require.ErrorContains(t, join(), "waiting for the move of a replica to this node")
	require.Nil(t, n.raft.Server("b~1"))
	require.NoError(t, add("b~1", "b:1"))
	require.NoError(t, join())
	require.NotNil(t, n.raft.Server("b~1"))
	require.ErrorContains(t, add("c~1", "c:1"), "the group has 2 replicas, and shall have 1")
	require.Nil(t, n.raft.Server("c~1"))
}

// TestAPromotionWaits checks that a node which follows the first group gets its vote later, when it has caught up. The
// command that moves the vote tries again.
func TestAPromotionWaits(t *testing.T) {
	n := newBareNode(t)
	n.configure(t, "a")
	n.leads(t)
	require.NoError(t, n.raft.AddNonvoter("b", "b:1", 0, time.Second).Error())
	require.ErrorIs(t, n.membership.Execute(membership.Order{What: "promote", ID: "b"}), limiter.ErrTryAgain)
	require.Equal(t, raft.Nonvoter, n.raft.Server("b").Suffrage)
}

// TestGroupsArePlacedWhenTheirZonesAreKnown checks that the leader of the first group places no groups before every
// member has said in which zone it is.
func TestGroupsArePlacedWhenTheirZonesAreKnown(t *testing.T) {
	n := newBareNode(t)
	n.configure(t, "a")
	n.leads(t)
	n.own.Options.Replicas = 1
	require.Equal(t, [][]string{{"a"}}, n.placer()())
	require.NoError(t, n.raft.AddNonvoter("b", "b:1", 0, time.Second).Error())
	require.Nil(t, n.placer()(), "nothing was heard from b")
}
