package quorum

import (
	"slices"
	"time"
)

// Round is one question to the voters.
type Round struct {
	term    uint64 // in which this node was elected
	born    time.Time
	begun   time.Time
	waiters int
	voters  []string
	asked   []string // of the voters
	yes     []string // who is in that term
	done    chan struct{}
	err     error
}

// few reports whether those who are asked cannot make up a majority.
func (r *Round) few() bool { return len(r.asked) <= len(r.voters)/2 }

// lacks reports whether a node has a vote that was not heard yet.
func (r *Round) lacks(id string) bool {
	return slices.Contains(r.voters, id) && !slices.Contains(r.yes, id)
}

// wake has due called. The caller holds mu.
func (c *Check) wake(after time.Duration) {
	if c.timer == nil {
		c.timer = time.AfterFunc(after, c.due)
		return
	}
	c.timer.Reset(after)
}

// due asks all voters when those who were quick so far are not, or begins a round for
// those who have waited for others long enough.
func (c *Check) due() {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch r := c.now; {
	case r == nil:
		if c.enough = 0; c.next != nil {
			c.begin()
		}
	case len(r.asked) < len(r.voters):
		r.asked = r.voters
		c.Ask(r.asked)
	}
}
