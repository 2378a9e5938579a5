package host

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/raftstore/internal/identity"
	"github.com/weir-project/weir/raftstore/wire"
)

// TestWhatIsNotGivenHasADefault checks that only options which are not set get their defaults.
func TestWhatIsNotGivenHasADefault(t *testing.T) {
	o := Options{NodeID: "a", RaftAddr: "127.0.0.1:6390", Join: []string{"b:1", "c:1", "d:1"}, Groups: 1}
	require.NoError(t, o.Complete())
	require.Equal(t, identity.Fsync, o.Durability)
	require.Equal(t, DefaultHeartbeat, o.Heartbeat)
	require.Equal(t, DefaultMaxDecisionAge, o.MaxDecisionAge)
	require.EqualValues(t, DefaultSnapshotBytes, o.SnapshotBytes)
	require.Equal(t, stalledAfter, o.StalledAfter)
	require.NotZero(t, o.MaxCalendarStep)
	require.EqualValues(t, wire.Version, o.Format)
	require.NotNil(t, o.Logger)
	require.NotNil(t, o.Source)
	require.NotNil(t, o.FS)
	require.Equal(t, 3, o.Expect)

	given := o
	given.Durability, given.Heartbeat, given.MaxDecisionAge, given.SnapshotBytes = identity.OS,
		minHeartbeat, time.Second, 5
	given.StalledAfter, given.MaxCalendarStep, given.Format, given.Expect = time.Minute, time.Hour, wire.Oldest, 2
	kept := given
	require.NoError(t, kept.Complete())
	require.Equal(t, given, kept)
}

// TestAnAddressMustReachThisNode checks that an address which other nodes cannot use is an error.
func TestAnAddressMustReachThisNode(t *testing.T) {
	for addr, says := range map[string]string{
		"127.0.0.1:1": "", "node-1:6390": "", "[::1]:1": "",
		":1":        "must be the address by which",
		"0.0.0.0:1": "must be the address by which", "[::]:1": "must be the address by which",
		"127.0.0.1": "must be the address by which", "": "must be the address by which",
	} {
		if err := CheckNode("a", addr); says == "" {
			require.NoError(t, err, addr)
		} else {
			require.ErrorContains(t, err, says, addr)
		}
	}
}

// TestReplicasNeedADisk checks that a cluster whose groups are on a part of the nodes refuses nodes that keep nothing.
// A restarted one would lose its replicas, and only a move would bring them back.
func TestReplicasNeedADisk(t *testing.T) {
	o := Options{NodeID: "a", RaftAddr: "127.0.0.1:6390", Groups: 2, Replicas: 3, Durability: identity.Memory}
	require.ErrorContains(t, o.Complete(), "--replicas needs --durability fsync or os")
	o = Options{NodeID: "a", RaftAddr: "127.0.0.1:6390", Groups: 2, Replicas: 3, Durability: identity.OS}
	require.NoError(t, o.Complete())
}
