package raftstore

import (
	"time"

	"github.com/weir-project/weir/limiter"
)

// Storage describes the log's disk: it is what decisions wait for.
func (n *Node) Storage() (limiter.Storage, bool) {
	// A file system that does not tell leaves zeros.
	disk, _ := n.host.options.FS.GetDiskUsage(n.host.options.DataDir)
	return limiter.Storage{
		Writes: n.group.logs.Writes.Snapshot(), UsedBytes: uint64(n.UsedBytes()),
		FreeBytes: disk.AvailBytes, SizeBytes: disk.TotalBytes,
	}, true
}

// Consensus is what this node has counted since it was started.
func (n *Node) Consensus() limiter.Consensus {
	machine, leadership := n.group.machine, n.group.leadership
	return limiter.Consensus{
		LeaderChanges: n.leaderChanges.Load(), Clamps: machine.Clamps.Load(), Late: n.group.pipeline.late.Load(),
		ColdStarts: leadership.coldStarts.Load(), Uncredited: leadership.uncredited.Load(),
		DowntimeCredit: time.Duration(leadership.downtimeCredit.Load()),
		LogBytes:       machine.LogBytes.Load(),
		Snapshots:      n.group.snapshots.took.Snapshot(), Standstill: time.Duration(machine.Standstill.Load()),
		Evicted: n.host.port.Evicted(),
	}
}
