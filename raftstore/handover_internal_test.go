package raftstore

import (
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/raftstore/internal/leadership"
	"github.com/weir-project/weir/raftstore/internal/timers"
)

// TestALeaderStopsServingAsItHandsOver checks that a leader stops serving as soon as its transfer of leadership
// succeeds. It does not wait until the Raft library reports the loss.
func TestALeaderStopsServingAsItHandsOver(t *testing.T) {
	a, b := newBareNode(t), newBareNodeCalled(t, "b")
	a.carrier.Connect("b:1", b.carrier)
	b.carrier.Connect("a:1", a.carrier)
	a.configure(t, "a", "b")
	b.configure(t, "a", "b")
	require.Eventually(t, func() bool {
		return a.raft.State() == raft.Leader || b.raft.State() == raft.Leader
	}, 20*time.Second, time.Millisecond)
	from, to := a, b
	if b.raft.State() == raft.Leader {
		from, to = b, a
	}
	from.leads(t)
	require.NoError(t, from.raft.Barrier(time.Second).Error())
	require.Eventually(t, func() bool {
		return from.leadership.HandOver(to.membership.Server()) == nil
	}, 20*time.Second, time.Millisecond)
	require.Nil(t, from.leadership.Current.Load())
}

// watchedPeers calls look after each attempt to serve that failed, because the leadership then asks for the reason.
type watchedPeers struct {
	leadership.Peers
	look func()
}

// NoQuorumExplained implements leadership.Peers.
func (w watchedPeers) NoQuorumExplained() bool {
	w.look()
	return w.Peers.NoQuorumExplained()
}

// TestAHandoverThatKeepsALeaderFromServingIsSeen checks that an elected node which cannot serve, because the Raft
// library believes in a transfer of leadership, observes that. The watchdog then ends the process if it lasts.
func TestAHandoverThatKeepsALeaderFromServingIsSeen(t *testing.T) {
	n := newBareNode(t)
	servers := []raft.Server{n.membership.Server(), {ID: "b", Address: "b:1", Suffrage: raft.Nonvoter}}
	require.NoError(t, n.raft.BootstrapCluster(raft.Configuration{Servers: servers}).Error())
	n.leads(t)
	n.own.Identity.ClusterID = "c"
	seen := false
	n.leadership.Peers = watchedPeers{n.leadership.Peers, func() {
		seen = seen || n.leadership.Handover.First.Load() != nil
	}}
	require.Eventually(t, func() bool { // a transfer may begin after the node serves, or end before it tries to
		transfer := n.raft.LeadershipTransferToServer("b", "b:1") // which does not answer
		n.leadership.BecomeLeader()
		return transfer.Error() != nil && seen
	}, 20*time.Second, time.Millisecond)
	require.Nil(t, n.leadership.Handover.First.Load(), "the node serves")
}

// TestTheSuccessorHasAppliedTheMost checks that the successor is the running voter with the most applied entries. A
// voter that announced its stop is chosen only if all voters that are up did so.
func TestTheSuccessorHasAppliedTheMost(t *testing.T) {
	for name, c := range map[string]struct {
		tell func(n *bareNode)
		want raft.ServerID
	}{
		"nobody was heard":   {func(*bareNode) {}, ""},
		"nothing is applied": {func(n *bareNode) { n.hear("b", 0, 0) }, "b"},
		"the most":           {func(n *bareNode) { n.hear("b", 8, 0); n.hear("c", 9, 0); n.hear("d", 7, 0) }, "c"},
		"as much":            {func(n *bareNode) { n.hear("b", 9, 0); n.hear("c", 9, 0) }, "b"},
		"one is silent":      {func(n *bareNode) { n.hear("b", 9, 3*timers.StatusEvery); n.hear("c", 8, 0) }, "c"},
		"one stops": {func(n *bareNode) {
			n.hear("b", 9, 0)
			n.hear("c", 8, 0)
			n.own.Peers.MarkStopping(
				"b")
		}, "c"},
		"all but one stop": {func(n *bareNode) { n.hear("b", 8, 0); n.hear("c", 9, 0); n.own.Peers.MarkStopping("c") },
			"b"},
		"all stop": {func(n *bareNode) {
			n.hear("b", 8, 0)
			n.hear("c", 9, 0)
			n.own.Peers.MarkStopping("b")
			n.own.Peers.MarkStopping("c")
		}, "c"},
		"one has no vote": {func(n *bareNode) { n.hear("x", 9, 0); n.hear("d", 8, 0) }, "d"},
	} {
		t.Run(name, func(t *testing.T) {
			n := newBareNode(t)
			servers := raft.Configuration{Servers: []raft.Server{
				n.membership.Server(), {ID: "b", Address: "b:1"}, {ID: "c", Address: "c:1"},
				{ID: "d", Address: "d:1"},
				{ID: "x", Address: "x:1", Suffrage: raft.Nonvoter},
			}}
			c.tell(n)
			require.NoError(t, n.raft.BootstrapCluster(servers).Error())
			to, ok := n.leadership.Successor()
			require.Equal(t, c.want, to.ID)
			require.Equal(t, c.want != "", ok)
		})
	}
}

// TestAFollowerHandsNothingOver checks that a follower that closes transfers no leadership and logs no warning.
func TestAFollowerHandsNothingOver(t *testing.T) {
	n := newBareNode(t)
	n.hear("b", 9, 0)
	n.configure(t, "a", "b")
	n.leadership.Resign()
	require.NotContains(t, n.said.String(), "leadership transfer failed")
}
