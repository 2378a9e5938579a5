package service

import (
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// defaultSlowUs is Redis' threshold, 10 ms. A decision takes far less.
	defaultSlowUs = 10_000
	// defaultSlowlogLen is Redis' default length. MaxSlowlogLen bounds CONFIG SET.
	defaultSlowlogLen = 128
	MaxSlowlogLen     = 10_000
	// shownSlowArgs and shownSlowBytes bound one entry, as in Redis.
	shownSlowArgs  = 32
	shownSlowBytes = 128
)

// slowlog records the last commands that exceeded the threshold. A batch of decisions is one entry.
type slowlog struct {
	ThresholdUs atomic.Int64 // negative: nothing is slow

	mu      sync.Mutex
	keep    int
	nextID  int64
	entries []slowEntry // oldest first
}

type slowEntry struct {
	Id         int64
	At         time.Time
	Took       time.Duration
	Args       []string
	Addr, Name string
}

func newSlowlog() *slowlog {
	l := &slowlog{keep: defaultSlowlogLen}
	l.ThresholdUs.Store(defaultSlowUs)
	return l
}

// IsSlow reports whether a command that took this long belongs into the log.
func (l *slowlog) IsSlow(took time.Duration) bool {
	threshold := l.ThresholdUs.Load()
	return threshold >= 0 && took.Microseconds() >= threshold
}

// Add records a command that began at a time. It evicts the oldest entry of a full log.
func (l *slowlog) Add(who *Client, at time.Time, took time.Duration, args []string) {
	e := slowEntry{At: at, Took: took, Args: shortArgs(args), Addr: who.Addr, Name: who.ClientName()}
	l.mu.Lock()
	defer l.mu.Unlock()
	e.Id = l.nextID
	l.nextID++
	l.entries = append(l.entries, e)
	l.trim()
}

func (l *slowlog) trim() {
	if over := len(l.entries) - l.keep; over > 0 {
		l.entries = append(l.entries[:0], l.entries[over:]...)
	}
}

// Resize sets the maximum number of entries, and drops the oldest entries beyond it.
func (l *slowlog) Resize(keep int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keep = keep
	l.trim()
}

// Size returns the number of entries and its maximum.
func (l *slowlog) Size() (entries, keep int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.entries), l.keep
}

// Newest returns up to n entries, newest first.
func (l *slowlog) Newest(n int) []slowEntry {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]slowEntry, 0, min(n, len(l.entries)))
	for i := len(l.entries) - 1; i >= 0 && len(out) < n; i-- {
		out = append(out, l.entries[i])
	}
	return out
}

func (l *slowlog) Clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = nil
}

// shortArgs truncates a command to the bounds of an entry, and marks the truncation.
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
