package acl

import (
	"net/netip"
	"sync"
	"time"
)

const (
	// FreeFailures is how often a source may fail before its logins have to wait: a
	// client with an old password and a pool of connections fails that often at once.
	FreeFailures = 10
	// loginPauseMin, doubled with each failure beyond, up to LoginPauseMax, is the pause
	// between two logins from such a source: a thousand passwords take more than an hour.
	loginPauseMin = 100 * time.Millisecond
	LoginPauseMax = 5 * time.Second
	// forgetFailures is how long a source must not fail to begin anew.
	forgetFailures = 5 * time.Minute
	// maxFailedSources bounds the sources that are remembered.
	maxFailedSources = 4096
	// forgetAmong is among how many sources the one to forget for a new one is looked
	// for: the one that has not failed for longest.
	forgetAmong = 8
)

// FailedLogins holds back who guesses passwords. Logins of a source that has failed too
// often are tried one after the other with a pause between; one that would have to wait
// for longer than the longest pause is refused untried, so that more connections do not
// mean more guesses.
type FailedLogins struct {
	Mu sync.Mutex
	By map[netip.Addr]*Failures
}

type Failures struct {
	Count int
	last  time.Time
	Next  time.Time // when the next login may be tried
}

func NewFailedLogins() *FailedLogins { return &FailedLogins{By: make(map[netip.Addr]*Failures)} }

// Delay says how long a login from a source has to wait, or that it must not be tried.
func (f *FailedLogins) Delay(from netip.Addr, now time.Time) (wait time.Duration, ok bool) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	past := f.By[from]
	if past == nil || past.Count < FreeFailures {
		return 0, true
	}
	wait = max(past.Next.Sub(now), 0)
	if wait > LoginPauseMax {
		return wait, false
	}
	past.Next = now.Add(wait + past.pause())
	return wait, true
}

// pause is the time between two logins.
func (p *Failures) pause() time.Duration {
	doubled := min(p.Count-FreeFailures, 10) // far beyond the longest
	return min(loginPauseMin<<doubled, LoginPauseMax)
}

// Note notes a failure, and reports whether it is the one from which on logins wait.
func (f *FailedLogins) Note(from netip.Addr, now time.Time) (first bool) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	past := f.By[from]
	if past == nil || now.Sub(past.last) > forgetFailures {
		if past == nil && len(f.By) == maxFailedSources {
			f.forget()
		}
		past = new(Failures)
		f.By[from] = past
	}
	past.Count++
	past.last = now
	return past.Count == FreeFailures
}

// forget makes room for one source. A map is walked from a random place.
func (f *FailedLogins) forget() {
	var least netip.Addr
	seen := 0
	for from, past := range f.By {
		if seen == 0 || past.last.Before(f.By[least].last) {
			least = from
		}
		if seen++; seen == forgetAmong {
			break
		}
	}
	delete(f.By, least)
}
