package membership

import "time"

// joinLogEvery is the longest pause between two log lines of a node that cannot join. Two lines a minute do not fill
// a log, and soon show an operator the next reason.
const joinLogEvery = 30 * time.Second

// joinLog limits how often a node logs that it cannot join. It logs at once, and then after pauses that double up to
// joinLogEvery. The attempts themselves keep their pace.
type joinLog struct {
	what  string
	next  time.Time
	pause time.Duration
}

// due reports whether a failure of the kind what may be logged now. A failure of another kind than the last one is
// logged at once.
func (l *joinLog) due(what string) bool {
	now := time.Now()
	if what != l.what {
		*l = joinLog{what: what, next: now, pause: joinEvery}
	}
	if now.Before(l.next) {
		return false
	}
	l.next, l.pause = now.Add(l.pause), min(2*l.pause, joinLogEvery)
	return true
}
