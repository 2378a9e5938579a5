package raftstore

import (
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/internal/fsm"
	"github.com/weir-project/weir/raftstore/internal/identity"
	"github.com/weir-project/weir/raftstore/internal/leadership"
)

// TestAMemberIsFoundByTheIDItWasGiven checks that the configured id finds the first and each later incarnation of a
// node.
func TestAMemberIsFoundByTheIDItWasGiven(t *testing.T) {
	n := newBareNode(t)
	require.NoError(t, n.raft.BootstrapCluster(raft.Configuration{Servers: []raft.Server{
		{ID: "c~1", Address: "c:1"}, n.membership.Server(), {ID: "b~2", Address: "b:1"},
	}}).Error())
	for id, want := range map[string]raft.ServerID{"a": "a", "b": "b~2", "c": "c~1", "c~1": "c~1"} {
		s := n.raft.ServerCalled(id)
		require.NotNil(t, s, id)
		require.Equal(t, want, s.ID)
	}
	for _, id := range []string{"", "d", "b~3"} {
		require.Nil(t, n.raft.ServerCalled(id), id)
	}
}

// TestTheClustersConstantsCount checks that the cluster's constants override a node's flags, and that the node logs
// the difference. A different kind of clock stops the node.
func TestTheClustersConstantsCount(t *testing.T) {
	const warning = "remembers idempotency keys for another time"
	n := newBareNode(t)
	here := n.own.Options.IDLifetimeNs()
	n.cluster.Joined(fsm.Constants{ClusterID: "one", IDLifetimeNs: here})
	require.NotContains(t, n.said.String(), warning)
	require.Empty(t, n.ended)
	n.cluster.Joined(fsm.Constants{ClusterID: "one", IDLifetimeNs: int64(time.Hour)})
	require.Contains(t, n.said.String(), warning)
	n.cluster.Joined(fsm.Constants{ClusterID: "one", IDLifetimeNs: here, TestClock: true})
	require.Len(t, n.ended, 1)
	require.ErrorIs(t, n.ended[0], failure.ErrClockKind)
	kept, ok, err := identity.Read(n.own.Options.FS, n.own.Options.DataDir)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, "one", kept.ClusterID)
}

// TestALeaderReadsFromItself checks that a leader confirms its reads itself, and has no connection to itself.
func TestALeaderReadsFromItself(t *testing.T) {
	n := newBareNode(t)
	require.ErrorIs(t, n.reads.AskOnce(true), limiter.ErrClusterDown)
	n.configure(t, "a")
	n.leads(t)
	require.NoError(t, n.raft.Barrier(time.Second).Error())
	n.fsm.MarkApplied(n.raft.CommitIndex())
	require.NoError(t, n.reads.AskOnce(true))
	require.NotNil(t, n.reads.ReadTime.Load())
	require.Nil(t, n.own.Peers.Client(n.raft.Leader()))
	asker, client := n.own.Peers.Clients(n.raft.Leader())
	require.Nil(t, asker)
	require.Nil(t, client)
}

// TestOnlyANodeThatGoesOnEndsForBeingStuck checks that a stuck handover ends the node that leads, but not while the node
// closes.
func TestOnlyANodeThatGoesOnEndsForBeingStuck(t *testing.T) {
	n := newBareNode(t)
	n.watchdog.EndIfStuck()
	require.Empty(t, n.ended)
	refused := func() {
		long := time.Now().Add(-time.Hour)
		n.leadership.Handover.First.Store(&leadership.Refusal{At: long, Term: n.raft.CurrentTerm()})
	}
	refused()
	n.watchdog.EndIfStuck()
	require.Empty(t, n.ended, "a follower refuses nothing")
	n.configure(t, "a")
	n.leads(t)
	n.watchdog.EndIfStuck()
	require.Empty(t, n.ended, "the refusal was in an earlier term")
	refused()
	n.watchdog.EndIfStuck()
	require.Len(t, n.ended, 1)
	require.ErrorIs(t, n.ended[0], failure.ErrStuck)
	close(n.own.Stop)
	n.watchdog.EndIfStuck()
	require.Len(t, n.ended, 1)
}
