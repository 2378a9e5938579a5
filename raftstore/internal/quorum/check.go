package quorum

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/weir-project/weir/internal/guards"
	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/internal/timers"
)

const (
	// gatherFor is how long after a round of questions began the next waits for as many as
	// it was for (measured with 50 clients at -P 1 to 128: 0.5 ms saves less, 2 ms lets
	// processors rest).
	gatherFor = time.Millisecond
)

// Check finds out whether this node's state is still the newest: that nobody
// was elected after it before those who wait had asked. Everyone who waits shares a
// round, and one round is under way at a time: the next one begins when it ends, with
// all who have come meanwhile. If they are fewer than the round was for, it waits for as
// many, for a moment: a round costs three nodes as much as two hundred denials, and who
// waits alone never waits for others.
//
// A round asks voters for their term, after the last who shares it has come: those that
// made up the majority of the round before, and all others if these take too long. If a
// majority, this node included, is in the term in which it was elected, then no one had
// been elected in a later one when they came: of the majority that elects a leader,
// each was in its term before it voted, terms never fall, and two majorities have a
// node in common. That also holds while the members change: the library changes one
// voter at a time, the next one when the last is committed, and what is committed every
// later leader knows; so its electorate is this node's newest one or differs by one.
//
// The Raft library's own VerifyLeader is not enough: it counts the next answer of a
// follower, whatever was asked and when. An answer that was on its way while another
// leader was elected counts as well (seen in a test), and there may be several, so that
// to ask twice does not help.
type Check struct {
	Self   string
	Term   func() uint64      // this node's own, now
	Voters func() []string    // of the newest configuration, this node among them
	Ask    func(ids []string) // wakes those who ask these nodes
	Stop   <-chan struct{}    // nobody asks any more

	mu    sync.Mutex
	now   *Round   // under way; nil: none
	next  *Round   // what comers join; nil: nobody waits
	Quick []string // who made up the majority of the last round that had one
	// enough is how many begin the next round before the timer does.
	enough int
	timer  *time.Timer // calls due; nil before it is needed
}

// Confirm returns nil when nobody had been elected in a term after the given one when it
// was called, ErrTryAgain when somebody was or a majority does not answer.
func (c *Check) Confirm(term uint64) error { return c.Await(c.Join(term), term) }

// Join is the first half of wait: the question may be asked while the caller does
// something else.
func (c *Check) Join(term uint64) *Round {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next == nil {
		c.next = &Round{term: term, born: time.Now(), done: make(chan struct{})}
	}
	mine := c.next
	if mine.waiters++; c.now == nil && mine.waiters >= c.enough {
		c.begin()
	}
	return mine
}

// Await is the second half, for the round that join returned.
func (c *Check) Await(mine *Round, term uint64) error {
	if mine.term != term {
		guards.OldRound.Hit()
		return failure.ErrTryAgain // one of the two is over
	}
	select {
	case <-mine.done:
		return mine.err
	case <-c.Stop:
		return failure.ErrTryAgain
	}
}

// begin begins the next round. The caller holds mu.
func (c *Check) begin() {
	r := c.next
	c.now, c.next, r.begun = r, nil, time.Now()
	if c.Term() != r.term {
		guards.OldRound.Hit()
		c.finish(failure.ErrTryAgain)
		return
	}
	r.voters = c.Voters()
	r.asked = slices.DeleteFunc(slices.Clone(c.Quick), func(id string) bool { return !slices.Contains(r.voters, id) })
	if r.few() {
		r.asked = r.voters
	}
	if c.count(c.Self); c.now == r {
		c.Ask(r.asked)
		c.wake(timers.AskAllAfter)
	}
}

// count takes a voter's yes. The caller holds mu.
func (c *Check) count(id string) {
	r := c.now
	if !r.lacks(id) {
		return
	}
	if r.yes = append(r.yes, id); len(r.yes) > len(r.voters)/2 {
		c.Quick = r.yes
		c.finish(nil)
	}
}

// finish ends the round that is under way. The caller holds mu.
func (c *Check) finish(err error) {
	r := c.now
	r.err, c.now = err, nil
	close(r.done)
	if c.enough = 0; err != nil {
		c.Quick = nil // they may be why
	}
	left := gatherFor - time.Since(r.begun)
	if err == nil && left > 0 {
		c.enough = r.waiters
	}
	switch {
	case c.next != nil && c.next.waiters >= c.enough:
		c.begin()
	case c.enough > 1:
		c.wake(left)
	}
}

// open returns the round that asks a node and lacks its answer; nil: none does.
func (c *Check) open(id string) *Round {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now == nil || !c.now.lacks(id) || !slices.Contains(c.now.asked, id) {
		return nil
	}
	return c.now
}

// heard takes the answer of a node that was asked after open returned r, and reports
// whether it settled anything.
func (c *Check) heard(r *Round, id string, term uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.now != r:
	case term > r.term:
		guards.Deposed.Hit()
		c.finish(failure.ErrTryAgain)
	case term == r.term:
		c.count(id)
	default:
		return false // it has not heard of this node's election
	}
	return true
}

// Expire ends the wait for voters that do not answer.
func (c *Check) Expire(maxAge time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.now != nil && time.Since(c.now.born) > maxAge {
		c.finish(failure.ErrTryAgain)
	}
}

// Abandon ends every wait: this node does not lead any more.
func (c *Check) Abandon() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now == nil && c.next != nil {
		c.begin()
	}
	for c.now != nil {
		c.finish(failure.ErrTryAgain)
	}
}

// Follow asks a member for its term whenever wake has a token and a round lacks the member, one
// question at a time, until ctx ends.
func (c *Check) Follow(ctx context.Context, id string, wake <-chan struct{},
	askTerm func(context.Context) (uint64, error)) {
	for {
		select {
		case <-wake:
		case <-ctx.Done():
			return
		}
		for r := c.open(id); r != nil && ctx.Err() == nil; r = c.open(id) {
			term, err := askTerm(ctx)
			if err != nil || !c.heard(r, id, term) {
				timers.Pause(ctx, timers.AskAgain)
			}
		}
	}
}
