package timers

import (
	"context"
	"time"
)

const (
	// HousekeepEvery paces what a leader and every node do beside decisions.
	HousekeepEvery = 250 * time.Millisecond
	// StatusEvery is how often nodes ask each other how they are, statusTimeout how
	// long they wait.
	StatusEvery   = time.Second
	StatusTimeout = time.Second
	// AskAgain is how long to wait before a member that did not tell its term is asked
	// again: the usual cause is that it is down.
	AskAgain = 50 * time.Millisecond
	// AskAllAfter is how long the voters that answered first the last time have, until
	// all others are asked as well: longer than an answer takes within one data centre.
	AskAllAfter = 2 * time.Millisecond
	// LeaderlessPause is how often a batch that waits for a leader looks for one.
	LeaderlessPause = 2 * time.Millisecond
	// AdminTimeout bounds a change of membership.
	AdminTimeout = 10 * time.Second
	// StuckFraction of the heartbeat timeout (half of it) is how long an append may take
	// before a leader withholds its heartbeats. Another node leads within three timeouts;
	// an append of up to one and a half timeouts deposes no leader.
	StuckFraction = 2
)

// Pause waits for a time, or until ctx ends.
func Pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
