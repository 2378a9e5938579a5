package raftstore

import (
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weir-project/weir/latency"
)

// Report is what a node has counted since it was started.
type Report struct {
	Writes        latency.Snapshot // appends to the log, until they are safe
	Disk          vfs.DiskUsage    // of the file system of the data directory; zero: not known
	LeaderChanges int64            // times that another node was found to lead than before
	Clamps        int64            // entries whose stamp lay before the last one's
	ColdStarts    int64            // full stops of the cluster after which this node was the first leader
	Uncredited    int64            // those whose downtime refilled nothing
	Credit        time.Duration    // limiter time given for them
	Late          int64            // answers that came too late to be handed out
	LogBytes      int64            // of entries since the last snapshot
	Snapshots     latency.Snapshot
	Standstill    time.Duration // of the last snapshot
	Evicted       int64         // connections of the inter-node port that were cut in their handshake to make room
}

// Report describes this node.
func (n *Node) Report() Report {
	// A file system that does not tell leaves zeros.
	disk, _ := n.host.options.FS.GetDiskUsage(n.host.options.DataDir)
	return Report{
		Writes: n.group.logs.writes.Snapshot(), Disk: disk,
		LeaderChanges: n.leaderChanges.Load(), Clamps: n.group.machine.clamps.Load(), Late: n.group.pipeline.late.Load(),
		ColdStarts: n.group.leadership.coldStarts.Load(), Uncredited: n.group.leadership.uncredited.Load(), Credit: time.Duration(n.group.leadership.downtimeCredit.Load()),
		LogBytes:  n.group.machine.logBytes.Load(),
		Snapshots: n.group.snapshots.took.Snapshot(), Standstill: time.Duration(n.group.machine.standstill.Load()),
		Evicted: n.host.port.Evicted(),
	}
}
