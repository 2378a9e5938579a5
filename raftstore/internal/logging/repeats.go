package logging

import (
	"sync"
	"time"
)

const (
	// repeatAfter is the time after which the same line about the same node is logged again.
	repeatAfter = 10 * time.Second
	// maxRepeats bounds the lines that Repeats remembers: about ten texts for each other node of a large cluster.
	maxRepeats = 256
)

// Repeats finds lines that several groups of a process log about one node. Without it, a dead node would make every
// group log the same lines again and again. The zero value is ready, and safe for concurrent use.
type Repeats struct {
	mu     sync.Mutex
	logged map[repeat]time.Time
}

type repeat struct{ text, node string }

// Seen reports whether a group has logged the line about the node a short time ago. If not, it takes the line as logged
// now. It remembers a bounded number of lines, and reports further ones as not seen.
func (r *Repeats) Seen(text, node string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	line := repeat{text, node}
	if at, ok := r.logged[line]; ok && now.Sub(at) < repeatAfter {
		return true
	}
	if len(r.logged) >= maxRepeats {
		for old, at := range r.logged {
			if now.Sub(at) >= repeatAfter {
				delete(r.logged, old)
			}
		}
	}
	if len(r.logged) < maxRepeats {
		if r.logged == nil {
			r.logged = map[repeat]time.Time{}
		}
		r.logged[line] = now
	}
	return false
}
