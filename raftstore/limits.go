package raftstore

import (
	"time"

	"github.com/weir-project/weir/raftstore/peer"
)

const (
	// maxEntryOps and maxEntryBytes close an entry: large enough that the cost of an
	// entry is spread over many operations, small enough that one is applied in well
	// under a millisecond.
	maxEntryOps   = 1024
	maxEntryBytes = 128 << 10
	// maxCallBytes bounds the operations of one step as the log writes them. They go into
	// one entry, and on a follower into one call to the leader: both have the same bound,
	// so that a transaction does not depend on the node that takes it.
	maxCallBytes = peer.MaxPayload
	// maxAnswerBytes bounds the strings in the answers to an entry: a follower gets them in one
	// message, which has the numbers beside them. One call has less; see package server.
	maxAnswerBytes = maxCallBytes / 2
	// maxQueuedOps bounds the operations that wait to be proposed: at the slowest
	// useful rate they are answered within the age a decision may have.
	maxQueuedOps = 64 << 10
	// maxInFlight bounds the entries, or batches on their way to the leader, that
	// have not been answered. Two keep disk and network busy at once; a few more serve
	// where a majority is far away.
	maxInFlight = 4
	// worthOps make an entry that goes beside others: the operations then cost as much as
	// it does (measured with 1 to 1024, at every depth of pipeline: 256 was best or even).
	worthOps = 256
	// patience is how long what was sent last may be under way until what waits goes,
	// however little it is: longer than a commit takes on a good disk in one
	// data centre. An entry in so long costs a node a few hundredths of a processor.
	patience = 5 * time.Millisecond
	// defaultMaxDecisionAge is how late an admission may reach its caller: later, it
	// would come on top of what a new leader admits.
	defaultMaxDecisionAge = 2 * time.Second
	// tickAfter is how long a leader stays silent before it commits the time: what a
	// failover may cost callers in refill.
	tickAfter = time.Second
	// housekeepEvery paces what a leader and every node do beside decisions.
	housekeepEvery = 250 * time.Millisecond
	// collectPerShard bounds the idle entries forgotten per shard and second.
	collectPerShard = 1024
	// snapshotBytes of entries behind the newest snapshot make a new one; three times
	// as many bound the log, with what is kept for slow followers.
	snapshotBytes = 64 << 20
	// calmSnapshots is how many times the bytes that make a snapshot may have come until
	// it no longer rests: what is due to keep the log short may then cost decisions time.
	calmSnapshots = 2
	// maxTrailing and minTrailing bound the entries kept behind a snapshot so that a
	// follower that was away for a moment catches up by log.
	maxTrailing, minTrailing = 10_240, 64
	// observeEvery is how often a node asks for the read index when no read does, so that
	// StaleFor has an age: a message or two per node cost little.
	observeEvery = 500 * time.Millisecond
	// maxTelling bounds the messages about commits that are under way: more than a cluster
	// has followers, so it is reached only when some do not answer.
	maxTelling = 16
	// statusEvery is how often nodes ask each other how they are, statusTimeout how
	// long they wait.
	statusEvery   = time.Second
	statusTimeout = time.Second
	// askAgain is how long to wait before a member that did not tell its term is asked
	// again: the usual cause is that it is down.
	askAgain = 50 * time.Millisecond
	// askAllAfter is how long the voters that answered first the last time have, until
	// all others are asked as well: longer than an answer takes within one data centre.
	askAllAfter = 2 * time.Millisecond
	// gatherFor is how long after a round of questions began the next waits for as many as
	// it was for (measured with 50 clients at -P 1 to 128: 0.5 ms saves less, 2 ms lets
	// processors rest).
	gatherFor = time.Millisecond
	// leaderlessPause is how often a batch that waits for a leader looks for one.
	leaderlessPause = 2 * time.Millisecond
	// quietFor is how long nobody must have forwarded anything before a node that led
	// closes its connections, lingerMost how long it waits for that.
	quietFor, lingerMost = 100 * time.Millisecond, time.Second
	// joinEvery paces the attempts to join.
	joinEvery = 500 * time.Millisecond
	// adminTimeout bounds a change of membership.
	adminTimeout = 10 * time.Second
	// hungAfter is how long a write to the log may take before the node gives up.
	hungAfter = 5 * time.Second
	// stuckFraction of the heartbeat timeout (half of it) is how long an append may take
	// before a leader withholds its heartbeats. Another node leads within three timeouts;
	// an append of up to one and a half timeouts deposes no leader.
	stuckFraction = 2
	// gatePause is how often a withheld heartbeat checks whether the append has ended.
	gatePause = 2 * time.Millisecond
	// deposedFraction of the heartbeat timeout (a quarter) is how long calls to a leader may
	// go on after another node leads: answers may be on their way.
	deposedFraction = 4
)
