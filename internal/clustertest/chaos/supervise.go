package chaos

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// ErrExited: a node ended by itself, and did not say that it may be restarted.
var ErrExited = errors.New("a node ended by itself")

// lastWords is how a node says why it cannot go on, and whether it may be started
// again.
var lastWords = regexp.MustCompile(`msg="this node cannot go on" error="((?:[^"\\]|\\.)*)" restart="(yes|no)`)

// exited does what a supervisor does when a node ends by itself: it starts the node
// again if that is said to be safe. Anything else, a panic or a node that has
// diverged, is a violation.
func (r *run) exited(n *Node, err error) {
	reason, restart := whyEnded(n.LogTail())
	if !restart {
		r.violations.Add(n.ID, fmt.Errorf("%w: %w\n%s", ErrExited, err, n.LogTail()))
		return
	}
	r.cfg.Logf("%s stopped by itself: %s", n.ID, reason)
	r.mu.Lock()
	r.selfStops[reason]++
	r.mu.Unlock()
	if err := n.Start(); err != nil {
		r.violations.Add(n.ID, err)
	}
}

// whyEnded reads the last words of this run of a node from its log.
func whyEnded(log string) (reason string, restart bool) {
	if start := strings.LastIndex(log, "chaos: start "); start >= 0 {
		log = log[start:]
	}
	all := lastWords.FindAllStringSubmatch(log, -1)
	if len(all) == 0 {
		return "", false
	}
	last := all[len(all)-1]
	return last[1], last[2] == "yes"
}
