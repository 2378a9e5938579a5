package limiter

import (
	"time"

	"github.com/weir-project/weir/latency"
)

// What a Limiter can also tell of itself is in two interfaces of their own: one that
// implements neither is none the worse.

// StorageReporter is a Limiter that keeps its state on a disk.
type StorageReporter interface {
	// Storage describes the disk; false when there is none.
	Storage() (Storage, bool)
}

// Storage is how a Limiter's disk does.
type Storage struct {
	// Writes are how long it took until what was decided was safe: each flush of a node
	// that runs alone, each append to the log of one of several.
	Writes latency.Snapshot
	// UsedBytes are what the state takes; 0: not known. FreeBytes and SizeBytes are
	// of the file system it is on; 0: not known.
	UsedBytes, FreeBytes, SizeBytes uint64
}

// ConsensusReporter is a Replica that counts what its consensus goes through.
type ConsensusReporter interface{ Consensus() Consensus }

// Consensus is what one node has seen since it was started.
type Consensus struct {
	LeaderChanges int64 // times that another node was found to lead than before
	Clamps        int64 // entries whose time lay before the last one's, and was held there
	// ColdStarts counts the full stops of the cluster after which this node was the first
	// leader, Uncredited those of them whose downtime refilled nothing. DowntimeCredit is the
	// limiter time given for the others.
	ColdStarts, Uncredited int64
	DowntimeCredit         time.Duration
	Late                   int64            // answers that came too late to be handed out, and became UNKNOWN
	LogBytes               int64            // of entries since the last snapshot
	Snapshots              latency.Snapshot // how long each took
	Standstill             time.Duration    // how long the last one held up decisions
	// Evicted counts the connections of other nodes, or strangers, that were cut in their
	// handshake to make room.
	Evicted int64
}
