package limiter

import (
	"time"

	"github.com/weir-project/weir/latency"
)

// A Limiter may also implement the reporting interfaces below.

// StorageReporter is a Limiter that stores its state on a disk.
type StorageReporter interface {
	// Storage describes the disk. It returns false for a Limiter whose state is in memory only.
	Storage() (Storage, bool)
}

// Storage describes the disk of a Limiter.
type Storage struct {
	// Writes is the latency of durable writes: the flushes of a server that runs alone, or the log appends of a cluster
	// node.
	Writes latency.Snapshot
	// UsedBytes is the size of the stored state. FreeBytes and SizeBytes describe the file system that has it. 0 means
	// unknown.
	UsedBytes, FreeBytes, SizeBytes uint64
}

// ConsensusReporter is a Replica that counts events of its consensus.
type ConsensusReporter interface{ Consensus() Consensus }

// Consensus counts events of one node since its start.
type Consensus struct {
	LeaderChanges int64 // observed changes of the leader
	Clamps        int64 // log entries that got the time of the previous entry, because their own was earlier
	// ColdStarts counts the cold starts after which this node was the first leader. Uncredited counts the ColdStarts
	// whose downtime was unknown. DowntimeCredit is the sum of the downtime credits.
	ColdStarts, Uncredited int64
	DowntimeCredit         time.Duration
	Late                   int64 // answers that arrived too late, so that clients got UNKNOWN
	// Entries counts the log entries with operations that this node proposed as a leader and applied, and EntryOps
	// their operations.
	Entries, EntryOps int64
	LogBytes          int64            // bytes of log entries since the last snapshot
	Snapshots         latency.Snapshot // durations of the snapshots
	Standstill        time.Duration    // time for which the last snapshot blocked decisions
	// Evicted counts connections to the inter-node port that were closed during the handshake to admit others.
	Evicted int64
	// SilentNodes counts the silences of other nodes that a second node confirmed, and SilentHere those that only this
	// node found. Both are 0 in a cluster with one group.
	SilentNodes, SilentHere int64
}
