package quorum

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/weir-project/weir/internal/guards"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore/internal/timers"
)

const (
	// gatherFor bounds the time, from the begin of a round, for which the next round waits for as many callers as that
	// round had. It was measured with 50 clients at -P 1 to 128: 0.5 ms saves less, and 2 ms leaves processors idle.
	gatherFor = time.Millisecond
)

// Rounds confirms that this node's state is still the newest: no other leader was elected after this node and before
// the callers asked. All waiting callers share a round, and one round is under way at a time. When a round ends, the
// next round begins with all callers that have arrived meanwhile. If they are fewer than the previous round had, the
// next round waits a moment for more. A round costs three nodes as much as two hundred denials. A single caller never
// waits for others.
//
// A round asks voters for their term after its last caller has arrived. It first asks the voters that made up the
// previous majority, and all voters if these are late. Assume that a majority, with this node, answers with the term
// in which this node was elected. Then no later leader had been elected when the callers arrived. The reason is that a
// voter enters a term before it votes in that term, that terms never decrease, and that two majorities share a node.
//
// This also holds during membership changes. The library changes one voter at a time, and the next only after the
// last is committed. Every later leader knows the committed changes, so its electorate equals this node's newest one
// or differs by one voter.
//
// The Raft library's own VerifyLeader is not enough: it counts the next answer of a follower, whatever the question
// was. It also counts an answer that was on its way while another leader was elected (seen in a test). Several such
// answers may be on their way, so asking twice does not help.
type Rounds struct {
	Self   string
	Term   func() uint64      // this node's current term
	Voters func() []string    // the voters of the newest configuration, with this node
	Ask    func(ids []string) // makes goroutines call AskTerm for these nodes
	Stop   <-chan struct{}    // closed when the node closes

	mu    sync.Mutex
	now   *Round   // the round under way; nil: none
	next  *Round   // the round that new callers join; nil: no caller waits
	Quick []string // the majority of the last successful round; nil: unknown
	// enough is the number of callers that begins the next round before the timer does.
	enough int
	timer  *time.Timer // calls due; nil before its first use
}

// Confirm returns nil if no leader of a term after the given one was elected before the call. It returns ErrTryAgain
// if such a leader was elected, or if a majority does not answer.
func (c *Rounds) Confirm(term uint64) error { return c.Await(c.Join(term), term) }

// Join is the first half of Confirm. It adds the caller to the next round, so that the question is asked while the
// caller does other work.
func (c *Rounds) Join(term uint64) *Round {
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

// Await is the second half of Confirm. It waits for the round that Join returned.
func (c *Rounds) Await(mine *Round, term uint64) error {
	if mine.term != term {
		guards.OldRound.Hit()
		return limiter.ErrTryAgain // one of the two terms has ended
	}
	select {
	case <-mine.done:
		return mine.err
	case <-c.Stop:
		return limiter.ErrTryAgain
	}
}

// begin begins the next round. The caller holds mu.
func (c *Rounds) begin() {
	r := c.next
	c.now, c.next, r.begun = r, nil, time.Now()
	if c.Term() != r.term {
		guards.OldRound.Hit()
		c.finish(limiter.ErrTryAgain)
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

// count records that a voter is in the term of the round. The caller holds mu.
func (c *Rounds) count(id string) {
	r := c.now
	if !r.awaits(id) {
		return
	}
	if r.yes = append(r.yes, id); len(r.yes) > len(r.voters)/2 {
		c.Quick = r.yes
		c.finish(nil)
	}
}

// finish ends the round that is under way. The caller holds mu.
func (c *Rounds) finish(err error) {
	r := c.now
	r.err, c.now = err, nil
	close(r.done)
	if c.enough = 0; err != nil {
		c.Quick = nil // these voters may be the reason
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

// open returns the round that asks a node and lacks its answer, or nil.
func (c *Rounds) open(id string) *Round {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now == nil || !c.now.awaits(id) || !slices.Contains(c.now.asked, id) {
		return nil
	}
	return c.now
}

// heard records the answer of a node that was asked after open returned r. It reports false if the node must be asked
// again.
func (c *Rounds) heard(r *Round, id string, term uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.now != r:
	case term > r.term:
		guards.Deposed.Hit()
		c.finish(limiter.ErrTryAgain)
	case term == r.term:
		c.count(id)
	default:
		return false // the node has not heard of this node's election
	}
	return true
}

// Expire ends the wait for voters that do not answer.
func (c *Rounds) Expire(maxAge time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.now != nil && time.Since(c.now.born) > maxAge {
		c.finish(limiter.ErrTryAgain)
	}
}

// Abandon ends every wait with ErrTryAgain, because this node no longer leads.
func (c *Rounds) Abandon() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now == nil && c.next != nil {
		c.begin()
	}
	for c.now != nil {
		c.finish(limiter.ErrTryAgain)
	}
}

// AskTerm asks a member for its term while a round lacks its answer. It asks one question at a time, until ctx ends.
func (c *Rounds) AskTerm(ctx context.Context, id string, ask func(context.Context) (uint64, error)) {
	for r := c.open(id); r != nil && ctx.Err() == nil; r = c.open(id) {
		term, err := ask(ctx)
		if err != nil || !c.heard(r, id, term) {
			timers.Pause(ctx, timers.AskAgain)
		}
	}
}
