package router_test

import (
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/raftstore/internal/host"
)

// TestIdleCostOfTheLibrary prints what idle replicas of the Raft library cost alone: three for each group, in this
// process, with the heartbeat of weir. They talk through channels and store nothing on disk. TestIdleCost cannot show
// less.
func TestIdleCostOfTheLibrary(t *testing.T) {
	forIdleGroups(t, func(t *testing.T, groups int, window time.Duration) {
		const size = 3
		var all []*raft.Raft
		for group := range groups {
			all = append(all, bareGroup(t, group, size)...)
		}
		require.Eventually(t, func() bool { return leadersOf(all) == groups }, patience, 10*time.Millisecond)
		before, began := cpuTime(t), time.Now()
		time.Sleep(window)
		used, took := cpuTime(t)-before, time.Since(began)
		require.Equal(t, groups, leadersOf(all), "an election costs more than idling")
		t.Logf("%d groups: of a core %.4f %% a replica", groups,
			100*used.Seconds()/took.Seconds()/float64(size*groups))
	})
}

func leadersOf(replicas []*raft.Raft) (leaders int) {
	for _, r := range replicas {
		if r.State() == raft.Leader {
			leaders++
		}
	}
	return leaders
}

// bareGroup starts the replicas of one group.
func bareGroup(t *testing.T, group, size int) (replicas []*raft.Raft) {
	links := make([]*raft.InmemTransport, size)
	var members raft.Configuration
	for i := range links {
		addr := raft.ServerAddress(fmt.Sprint(group, "-", i))
		_, links[i] = raft.NewInmemTransport(addr)
		members.Servers = append(members.Servers, raft.Server{ID: raft.ServerID(addr), Address: addr})
		for _, other := range links[:i] {
			other.Connect(addr, links[i])
			links[i].Connect(other.LocalAddr(), other)
		}
	}
	for i, link := range links {
		c := raft.DefaultConfig()
		c.LocalID, c.Logger = members.Servers[i].ID, hclog.NewNullLogger()
		c.HeartbeatTimeout, c.ElectionTimeout = host.DefaultHeartbeat, host.DefaultHeartbeat
		c.LeaderLeaseTimeout, c.CommitTimeout = host.DefaultHeartbeat, time.Hour
		store, snapshots := raft.NewInmemStore(), raft.NewInmemSnapshotStore()
		require.NoError(t, raft.BootstrapCluster(c, store, store, snapshots, link, members))
		r, err := raft.NewRaft(c, noFSM{}, store, store, snapshots, link)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, r.Shutdown().Error()) })
		replicas = append(replicas, r)
	}
	return replicas
}

// noFSM has no state.
type noFSM struct{}

func (noFSM) Apply(*raft.Log) any                 { return nil }
func (noFSM) Snapshot() (raft.FSMSnapshot, error) { return nil, raft.ErrNothingNewToSnapshot }
func (noFSM) Restore(io.ReadCloser) error         { return nil }
