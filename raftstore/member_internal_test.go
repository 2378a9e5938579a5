package raftstore

import (
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// TestAMemberIsFoundByTheIDItWasGiven, in its first life or a later one.
func TestAMemberIsFoundByTheIDItWasGiven(t *testing.T) {
	n := newBareNode(t)
	require.NoError(t, n.raft.BootstrapCluster(raft.Configuration{Servers: []raft.Server{
		{ID: "c~1", Address: "c:1"}, n.server(), {ID: "b~2", Address: "b:1"},
	}}).Error())
	for id, want := range map[string]raft.ServerID{"a": "a", "b": "b~2", "c": "c~1", "c~1": "c~1"} {
		s := n.memberCalled(id)
		require.NotNil(t, s, id)
		require.Equal(t, want, s.ID)
	}
	for _, id := range []string{"", "d", "b~3"} {
		require.Nil(t, n.memberCalled(id), id)
	}
}

// TestTheClustersConstantsCount, and a node that was told others says so.
func TestTheClustersConstantsCount(t *testing.T) {
	const warning = "remembers ids for another time"
	n := newBareNode(t)
	n.joined(founding{ClusterID: "one", IDLifetimeNs: n.idLifetimeNs})
	require.NotContains(t, n.said.String(), warning)
	require.Empty(t, n.ended)
	n.joined(founding{ClusterID: "one", IDLifetimeNs: int64(time.Hour)})
	require.Contains(t, n.said.String(), warning)
	n.joined(founding{ClusterID: "one", IDLifetimeNs: n.idLifetimeNs, TestClock: true})
	require.Len(t, n.ended, 1)
	require.ErrorIs(t, n.ended[0], ErrClockKind)
	kept, ok, err := readIdentity(n.options.FS, n.options.DataDir)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, "one", kept.ClusterID)
}

// TestALeaderReadsFromItself: it is not among those it can ask.
func TestALeaderReadsFromItself(t *testing.T) {
	n := newBareNode(t)
	require.ErrorIs(t, n.reads.askOnce(true), ErrNoLeader)
	n.configure(t, "a")
	n.leads(t)
	require.NoError(t, n.raft.Barrier(time.Second).Error())
	n.machine.passTo(n.raft.CommitIndex())
	require.NoError(t, n.reads.askOnce(true))
	require.NotNil(t, n.readTime.Load())
	require.Nil(t, n.leaderClient())
	asker, client := n.leaderClients()
	require.Nil(t, asker)
	require.Nil(t, client)
}

// TestOnlyANodeThatGoesOnEndsForBeingStuck: one that closes ends by itself.
func TestOnlyANodeThatGoesOnEndsForBeingStuck(t *testing.T) {
	n := newBareNode(t)
	n.endIfStuck()
	require.Empty(t, n.ended)
	long := time.Now().Add(-time.Hour)
	n.handover.since.Store(&long)
	n.endIfStuck()
	require.Len(t, n.ended, 1)
	require.ErrorIs(t, n.ended[0], ErrStuck)
	close(n.stop)
	n.endIfStuck()
	require.Len(t, n.ended, 1)
}
