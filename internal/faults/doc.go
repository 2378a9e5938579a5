// Package faults holds behaviour of a node that only tests switch on. Known mistakes prove that a check finds the
// mistake it looks for. Failpoints let a test hold a node between two steps.
//
// Mistakes are compiled in by the build tag weirfaults alone. Without the tag a Set is empty, Has is the constant
// false, and the compiler drops the code of every mistake. A release build therefore contains no mistake.
package faults

// Fault is a known mistake.
type Fault uint

// The known mistakes.
const (
	HeartbeatFastPath    Fault = iota // let heartbeats pass beside the main loop (hashicorp/raft issue 695)
	NoSync                            // write the log without fsync while promising it
	WallClock                         // stamp entries with the wall clock
	NoClamp                           // let limiter time go back
	CollectEarly                      // forget entries that are not idle
	EarlyReply                        // answer before the entry is committed
	SnapshotWithoutStamp              // lose limiter time in a snapshot
	FastestWall                       // believe the wall clock that is farthest ahead after a cold start
	StaleIndex                        // record an older applied index than the data has
	WrongDecisions                    // decide otherwise than the other nodes, as an odd processor would
	ReadLocally                       // skip ReadIndex: take this node's own state for the newest
	FreshByContact                    // take the time since the last contact with the leader for the age of the state
	NoSlotCheck                       // carry out operations on slots that another group owns
	StaleMap                          // route every other decision by the map of a cluster with half as many groups
	NoWitness                         // take a node for silent that no other node finds silent
	AnyFollow                         // follow the first group also by a batch for another version
	FollowLater                       // answer a change of shared items before the other groups have it
)
