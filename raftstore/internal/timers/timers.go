package timers

import (
	"context"
	"time"
)

const (
	// HousekeepEvery is the period of the background work of a node.
	HousekeepEvery = 250 * time.Millisecond
	// StatusEvery is how often a node asks every other node for its status, and StatusTimeout bounds the wait for the
	// answer.
	StatusEvery   = time.Second
	StatusTimeout = time.Second
	// AskAgain is the pause before a member that did not return its term is asked again. The usual cause is that the
	// member is down.
	AskAgain = 50 * time.Millisecond
	// AskAllAfter is the time that the quickest voters of the last round have, before all others are asked as well. It
	// is longer than an answer takes within one data centre.
	AskAllAfter = 2 * time.Millisecond
	// LeaderlessPause is how often a batch that waits for a leader looks for one.
	LeaderlessPause = 2 * time.Millisecond
	// AdminTimeout bounds a change of membership.
	AdminTimeout = 10 * time.Second
	// StuckFraction divides the heartbeat timeout: an append may take half of it before a leader withholds its
	// heartbeats. Another node leads within three timeouts. An append of up to one and a half timeouts deposes no
	// leader.
	StuckFraction = 2
)

// ElectionTimeout is how long a new leader waits for its followers, for a heartbeat timeout.
func ElectionTimeout(heartbeat time.Duration) time.Duration { return 5 * heartbeat }

// Pause waits for a time, or until ctx ends.
func Pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
