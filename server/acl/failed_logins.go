package acl

import (
	"net/netip"
	"sync"
	"time"
)

const (
	// FreeFailures is the number of failures after which the logins of a source are delayed. A source is a client's
	// address as connlimit.SourceOf returns it. A connection pool with an old password may fail this often at once.
	FreeFailures = 10
	// loginPauseMin is the first pause between two logins of such a source. It doubles with each further failure, up to
	// LoginPauseMax. A thousand passwords thus take more than an hour.
	loginPauseMin = 100 * time.Millisecond
	LoginPauseMax = 5 * time.Second
	// forgetFailures is the time without a failure after which the failures of a source no longer count.
	forgetFailures = 5 * time.Minute
	// maxFailedSources bounds the number of recorded sources.
	maxFailedSources = 4096
	// forgetAmong is how many recorded sources an eviction compares.
	forgetAmong = 8
)

// FailedLogins delays password guesses. It is safe for concurrent use. Logins of a source with too many failures are
// tried one after another, with a pause between them. A login that would wait longer than LoginPauseMax is refused
// without a try. So a client with more connections cannot guess faster.
type FailedLogins struct {
	Mu sync.Mutex
	By map[netip.Addr]*Failures
}

// Failures are the failed logins of one source.
type Failures struct {
	Count int
	last  time.Time
	Next  time.Time // earliest time of the next login
}

func NewFailedLogins() *FailedLogins { return &FailedLogins{By: make(map[netip.Addr]*Failures)} }

// Delay returns how long a login from a source must wait before it is tried, and reserves that time: the next login of
// the source waits longer. It returns false if the login must not be tried.
func (f *FailedLogins) Delay(from netip.Addr, now time.Time) (wait time.Duration, ok bool) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	past := f.By[from]
	if past == nil || past.Count < FreeFailures || now.Sub(past.last) > forgetFailures {
		return 0, true
	}
	wait = max(past.Next.Sub(now), 0)
	if wait > LoginPauseMax {
		return wait, false
	}
	past.Next = now.Add(wait + past.pause())
	return wait, true
}

// pause returns the time between two logins of the source.
func (p *Failures) pause() time.Duration {
	doubled := min(p.Count-FreeFailures, 10) // 10 doublings far exceed LoginPauseMax
	return min(loginPauseMin<<doubled, LoginPauseMax)
}

// Note records a failure. It reports whether this failure starts the delays.
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

// forget evicts one of forgetAmong random sources: the one whose last failure is oldest. A map is iterated from a
// random position.
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
