package server

import (
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// defaultSlow is Redis' threshold, 10 ms: far above any decision.
	defaultSlowUs = 10_000
	// defaultSlowlogLen is Redis' length; maxSlowlogLen bounds CONFIG SET.
	defaultSlowlogLen = 128
	maxSlowlogLen     = 10_000
	// shownSlowArgs and shownSlowBytes bound one entry, as in Redis.
	shownSlowArgs  = 32
	shownSlowBytes = 128
)

// slowlog remembers the commands that took longest to carry out. A batch of
// decisions counts as one.
type slowlog struct {
	thresholdUs atomic.Int64 // negative: nothing is slow

	mu      sync.Mutex
	keep    int
	nextID  int64
	entries []slowEntry // oldest first
}

type slowEntry struct {
	id         int64
	at         time.Time
	took       time.Duration
	args       []string
	addr, name string
}

func newSlowlog() *slowlog {
	l := &slowlog{keep: defaultSlowlogLen}
	l.thresholdUs.Store(defaultSlowUs)
	return l
}

func (l *slowlog) isSlow(took time.Duration) bool {
	threshold := l.thresholdUs.Load()
	return threshold >= 0 && took.Microseconds() >= threshold
}

func (l *slowlog) add(who *clientInfo, at time.Time, took time.Duration, args []string) {
	e := slowEntry{at: at, took: took, args: shortArgs(args), addr: who.addr, name: who.clientName()}
	l.mu.Lock()
	defer l.mu.Unlock()
	e.id = l.nextID
	l.nextID++
	l.entries = append(l.entries, e)
	l.trim()
}

func (l *slowlog) trim() {
	if over := len(l.entries) - l.keep; over > 0 {
		l.entries = append(l.entries[:0], l.entries[over:]...)
	}
}

func (l *slowlog) resize(keep int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keep = keep
	l.trim()
}

func (l *slowlog) size() (entries, keep int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.entries), l.keep
}

// newest returns up to n entries, newest first.
func (l *slowlog) newest(n int) []slowEntry {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]slowEntry, 0, min(n, len(l.entries)))
	for i := len(l.entries) - 1; i >= 0 && len(out) < n; i-- {
		out = append(out, l.entries[i])
	}
	return out
}

func (l *slowlog) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = nil
}

// shortArgs cuts a command to what an entry may hold, and says so.
func shortArgs(args []string) []string {
	short := make([]string, 0, min(len(args), shownSlowArgs))
	for i, a := range args {
		if i == shownSlowArgs-1 && len(args) > shownSlowArgs {
			return append(short, "... ("+strconv.Itoa(len(args)-i)+" more arguments)")
		}
		if over := len(a) - shownSlowBytes; over > 0 {
			a = a[:shownSlowBytes] + "... (" + strconv.Itoa(over) + " more bytes)"
		}
		short = append(short, a)
	}
	return short
}
