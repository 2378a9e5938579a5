package raftstore_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/raftstore"
)

// hourAhead is a machine whose wall clock is an hour ahead.
type hourAhead struct{ persistence.Source }

func (s hourAhead) WallNs() int64 { return s.Source.WallNs() + int64(time.Hour) }

func TestReport(t *testing.T) {
	c := newCluster(t, 3, func(i int, o *raftstore.Options) {
		if i == 1 {
			o.Source = hourAhead{persistence.SystemSource()}
		}
	})
	first, _ := c.leader()
	require.NoError(t, first.Snapshot())
	r := first.Consensus()
	require.EqualValues(t, 1, r.Snapshots.Count)
	require.Positive(t, r.Snapshots.Sum)
	disk, ok := first.Storage()
	require.True(t, ok)
	require.Positive(t, disk.Writes.Count)
	require.Positive(t, disk.SizeBytes)
	require.Greater(t, disk.UsedBytes, uint64(16<<20), "the log must allocate a file in advance")
	require.Less(t, disk.UsedBytes, uint64(64<<20))
	require.Zero(t, r.LeaderChanges, "the first leader must not count as a change")

	wrong := []time.Duration{0, time.Hour, 0}
	for k, n := range c.nodes {
		require.Eventually(t, func() bool {
			for j, m := range n.Topology().Nodes {
				ahead := wrong[j] - wrong[k]
				if !m.Up || (m.ClockAhead-ahead).Abs() > time.Minute {
					return false
				}
			}
			return true
		}, patience, 10*time.Millisecond, "node %d must see every member and its clock", k)
	}

	var from int
	require.Eventually(t, func() bool { // on a busy machine the others may not be up yet
		leader, at := c.leader()
		from = at
		return leader.TransferLeadership("") == nil
	}, patience, 10*time.Millisecond)
	for _, n := range c.nodes {
		require.Eventually(t, func() bool { return n.Consensus().LeaderChanges > 0 }, patience, 10*time.Millisecond)
	}
	_, next := c.leader()
	require.NotEqual(t, from, next)
}

// TestEntriesAreCounted checks that the leader counts the entries that it proposed, and their operations, before it
// answers. Entries without operations do not count, and followers count none.
func TestEntriesAreCounted(t *testing.T) {
	c := newCluster(t, 3, nil)
	leader, at := c.leader()
	before := leader.Consensus()
	ops := make([]engine.Op, 5)
	for i := range ops {
		ops[i] = engine.Op{Key: []byte{'k', byte('0' + i)}, Cost: 1, Limit: engine.Limit{
			Algorithm: engine.TokenBucket, Rate: engine.Rate{Units: 1, PerNs: int64(time.Hour)}, Max: 1}}
	}
	require.NoError(t, leader.Decide(ops, make([]engine.Decision, len(ops))))
	require.EqualValues(t, 1, leader.Consensus().Entries-before.Entries)
	require.EqualValues(t, 5, leader.Consensus().EntryOps-before.EntryOps)
	for i, n := range c.nodes {
		if i != at {
			require.Zero(t, n.Consensus().Entries)
		}
	}
	applied := leader.Topology().AppliedIndex
	require.Eventually(t, func() bool { return leader.Topology().AppliedIndex > applied }, patience, time.Millisecond)
	require.EqualValues(t, 1, leader.Consensus().Entries-before.Entries, "a tick has no operations")
}
