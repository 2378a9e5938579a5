package server

import (
	"net/netip"
	"sync"
	"time"
)

const (
	// freeFailures is how often a source may fail before its logins have to wait: a
	// client with an old password and a pool of connections fails that often at once.
	freeFailures = 10
	// loginPauseMin, doubled with each failure beyond, up to loginPauseMax, is the pause
	// between two logins from such a source: a thousand passwords take more than an hour.
	loginPauseMin = 100 * time.Millisecond
	loginPauseMax = 5 * time.Second
	// forgetFailures is how long a source must not fail to begin anew.
	forgetFailures = 5 * time.Minute
	// maxFailedSources bounds the sources that are remembered.
	maxFailedSources = 4096
	// forgetAmong is among how many sources the one to forget for a new one is looked
	// for: the one that has not failed for longest.
	forgetAmong = 8
)

// failedLogins holds back who guesses passwords. Logins of a source that has failed too
// often are tried one after the other with a pause between; one that would have to wait
// for longer than the longest pause is refused untried, so that more connections do not
// mean more guesses.
type failedLogins struct {
	mu sync.Mutex
	by map[netip.Addr]*failures
}

type failures struct {
	count int
	last  time.Time
	next  time.Time // when the next login may be tried
}

func newFailedLogins() *failedLogins { return &failedLogins{by: make(map[netip.Addr]*failures)} }

// turn says how long a login from a source has to wait, or that it must not be tried.
func (f *failedLogins) turn(from netip.Addr, now time.Time) (wait time.Duration, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	past := f.by[from]
	if past == nil || past.count < freeFailures {
		return 0, true
	}
	wait = max(past.next.Sub(now), 0)
	if wait > loginPauseMax {
		return wait, false
	}
	past.next = now.Add(wait + past.pause())
	return wait, true
}

// pause is the time between two logins.
func (p *failures) pause() time.Duration {
	doubled := min(p.count-freeFailures, 10) // far beyond the longest
	return min(loginPauseMin<<doubled, loginPauseMax)
}

// failed notes a failure, and reports whether it is the one from which on logins wait.
func (f *failedLogins) failed(from netip.Addr, now time.Time) (first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	past := f.by[from]
	if past == nil || now.Sub(past.last) > forgetFailures {
		if past == nil && len(f.by) == maxFailedSources {
			f.forget()
		}
		past = new(failures)
		f.by[from] = past
	}
	past.count++
	past.last = now
	return past.count == freeFailures
}

// forget makes room for one source. A map is walked from a random place.
func (f *failedLogins) forget() {
	var least netip.Addr
	seen := 0
	for from, past := range f.by {
		if seen == 0 || past.last.Before(f.by[least].last) {
			least = from
		}
		if seen++; seen == forgetAmong {
			break
		}
	}
	delete(f.by, least)
}
