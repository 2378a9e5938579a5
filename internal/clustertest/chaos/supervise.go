package chaos

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// ErrExited reports that a node ended by itself without stating that it may be restarted.
var ErrExited = errors.New("a node ended by itself")

// lastWords matches the log line in which a node states why it cannot continue, and whether it may be restarted.
var lastWords = regexp.MustCompile(`msg="this node cannot go on" error="((?:[^"\\]|\\.)*)" restart="(yes|no)`)

// exited acts as a supervisor when a node ends by itself. It restarts the node if the node states that this is safe.
// Any other end, such as a panic or a divergence, is a violation.
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

// whyEnded reads the reason from the log of this run of a node.
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
