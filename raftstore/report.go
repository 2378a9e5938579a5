package raftstore

import (
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weir-project/weir/latency"
)

// counters are what a node counts about itself since it was started.
type counters struct {
	late          atomic.Int64 // answers turned into ErrUnknown because they came late
	leaderChanges atomic.Int64
	snapshots     latency.Histogram
	// coldStarts counts the full stops of the cluster after which this node was the first
	// leader, uncredited those of them whose downtime refilled nothing. downtimeCredit is
	// the limiter time given, in nanoseconds.
	coldStarts, uncredited, downtimeCredit atomic.Int64
}

// UsedBytes returns the size of all files in the data directory. It stats every file.
func (n *Node) UsedBytes() int64 {
	type file struct {
		name  string
		bytes int64
	}
	seen := map[file]bool{} // an image shares files with the one before, under the same name
	var used int64
	var visit func(dir string)
	visit = func(dir string) {
		names, _ := n.options.FS.List(dir) // a file that has just been removed counts for nothing
		for _, name := range names {
			path := n.options.FS.PathJoin(dir, name)
			info, err := n.options.FS.Stat(path)
			switch {
			case err != nil:
			case info.IsDir():
				visit(path)
			case !seen[file{name, info.Size()}]:
				seen[file{name, info.Size()}] = true
				used += info.Size()
			}
		}
	}
	visit(n.options.DataDir)
	return used
}

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
	disk, _ := n.options.FS.GetDiskUsage(n.options.DataDir)
	return Report{
		Writes: n.logs.writes.Snapshot(), Disk: disk,
		LeaderChanges: n.counters.leaderChanges.Load(), Clamps: n.machine.clamps.Load(), Late: n.counters.late.Load(),
		ColdStarts: n.counters.coldStarts.Load(), Uncredited: n.counters.uncredited.Load(), Credit: time.Duration(n.counters.downtimeCredit.Load()),
		LogBytes:  n.machine.logBytes.Load(),
		Snapshots: n.counters.snapshots.Snapshot(), Standstill: time.Duration(n.machine.standstill.Load()),
		Evicted: n.port.Evicted(),
	}
}
