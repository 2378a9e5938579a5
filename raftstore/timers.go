package raftstore

import "time"

const (
	// housekeepEvery paces what a leader and every node do beside decisions.
	housekeepEvery = 250 * time.Millisecond
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
	// leaderlessPause is how often a batch that waits for a leader looks for one.
	leaderlessPause = 2 * time.Millisecond
	// adminTimeout bounds a change of membership.
	adminTimeout = 10 * time.Second
	// stuckFraction of the heartbeat timeout (half of it) is how long an append may take
	// before a leader withholds its heartbeats. Another node leads within three timeouts;
	// an append of up to one and a half timeouts deposes no leader.
	stuckFraction = 2
)
