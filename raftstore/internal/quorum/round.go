package quorum

import (
	"slices"
	"time"
)

// Round is one question to the voters for their term, and the callers that share it.
type Round struct {
	term    uint64 // the term in which this node was elected
	born    time.Time
	begun   time.Time
	waiters int
	voters  []string
	asked   []string // the voters that are asked
	yes     []string // the voters that are in that term
	done    chan struct{}
	err     error
}

// few reports whether the asked voters are too few for a majority.
func (r *Round) few() bool { return len(r.asked) <= len(r.voters)/2 }

// awaits reports whether a node is a voter that has not answered yes yet.
func (r *Round) awaits(id string) bool {
	return slices.Contains(r.voters, id) && !slices.Contains(r.yes, id)
}

// wake calls due after the given time. The caller holds mu.
func (c *Rounds) wake(after time.Duration) {
	if c.timer == nil {
		c.timer = time.AfterFunc(after, c.due)
		return
	}
	c.timer.Reset(after)
}

// due asks all voters if those of Rounds.Quick are late. If no round is under way, it begins a round for the callers
// that have waited for more callers.
func (c *Rounds) due() {
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
