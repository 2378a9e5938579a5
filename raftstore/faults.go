package raftstore

// Faults switch known mistakes on, so that the tests that look for them can be
// seen to find them. All are off outside tests.
type Faults struct {
	HeartbeatFastPath    bool // let heartbeats pass beside the main loop (hashicorp/raft issue 695)
	NoSync               bool // write the log without fsync while promising it
	WallClock            bool // stamp entries with the wall clock
	NoClamp              bool // let limiter time go back
	CollectEarly         bool // forget entries that are not idle
	EarlyReply           bool // answer before the entry is committed
	SnapshotWithoutStamp bool // lose limiter time in a snapshot
	FastestWall          bool // believe the wall clock that is farthest ahead after a cold start
	StaleIndex           bool // record an older applied index than the data has
	OddDecisions         bool // decide otherwise than the other nodes, as an odd processor would
	ReadLocally          bool // skip ReadIndex: take this node's own state for the newest
	FreshByContact       bool // take the time since the last contact with the leader for the age of the state
	NoReadIndex          bool // refuse callReadIndex, as an older weir does
}
