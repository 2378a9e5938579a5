package raftstore

import (
	"time"

	"github.com/weir-project/weir/limiter"
)

// Groups returns the number of Raft groups of the node's cluster, or of the cluster that it would found.
func (n *Node) Groups() int {
	if groups, ok := n.host.Identity.ClusterGroups(); ok {
		return groups
	}
	return max(n.host.Options.Groups, 1)
}

// ClusterGroups returns the number of Raft groups of the node's cluster. It returns false while the node knows of no
// cluster.
func (n *Node) ClusterGroups() (int, bool) { return n.host.Identity.ClusterGroups() }

// Joined reports whether the node has been in a committed configuration of its cluster.
func (n *Node) Joined() bool { return n.host.Identity.HasJoined() }

// Storage describes the log's disk, which decisions wait for.
func (n *Node) Storage() (limiter.Storage, bool) {
	// A file system without these figures leaves zeros.
	disk, _ := n.host.Options.FS.GetDiskUsage(n.host.Options.DataDir)
	return limiter.Storage{
		Writes: n.group.logs.Writes.Snapshot(), UsedBytes: uint64(n.UsedBytes()),
		FreeBytes: disk.AvailBytes, SizeBytes: disk.TotalBytes,
	}, true
}

// Consensus returns this node's counters since its start.
func (n *Node) Consensus() limiter.Consensus {
	applied, leadership := n.group.fsm, n.group.leadership
	return limiter.Consensus{
		LeaderChanges: n.leaderChanges.Load(), Clamps: applied.Clamps.Load(), Late: n.group.pipeline.Late.Load(),
		ColdStarts: leadership.ColdStarts.Load(), Uncredited: leadership.Uncredited.Load(),
		DowntimeCredit: time.Duration(leadership.DowntimeCredit.Load()),
		Entries:        n.group.pipeline.Entries.Load(), EntryOps: n.group.pipeline.EntryOps.Load(),
		LogBytes:  applied.LogBytes.Load(),
		Snapshots: n.group.snapshots.Took.Snapshot(), Standstill: time.Duration(applied.Standstill.Load()),
		Evicted: n.host.Port.Evicted(),
	}
}
