package timers

import (
	"sync"
	"time"
)

// Loop calls the periodic checks of all groups of a process, one after the other, every HousekeepEvery.
//
// A check must not block. If one blocks nevertheless, the next pass begins in another goroutine, and continues with
// the check after it. No pass calls a check whose last call has not returned. So a group that hangs delays the checks
// of other groups once, by at most HousekeepEvery, and holds one goroutine for each check that hangs.
type Loop struct {
	stop  chan struct{}
	tasks sync.WaitGroup

	mu     sync.Mutex
	idle   *sync.Cond // a check has returned
	checks []*check
	at     int              // the position in checks of the next call
	ticks  int64            // passes so far; the newest pass is the only one that calls further checks
	turns  map[string]int64 // by task of the host: the tick of the last turn
}

// check is a function that a loop calls.
type check struct {
	run     func()
	every   int64 // in ticks of the loop
	due     int64 // the tick of the next call
	running bool
}

// NewLoop returns a loop that runs until Close.
func NewLoop() *Loop {
	l := &Loop{stop: make(chan struct{}), turns: map[string]int64{}}
	l.idle = sync.NewCond(&l.mu)
	l.tasks.Go(l.run)
	return l
}

// Close ends the loop. It does not wait for checks that run.
func (l *Loop) Close() {
	close(l.stop)
	l.tasks.Wait()
}

func (l *Loop) run() {
	tick := time.NewTicker(HousekeepEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			go l.pass(l.begin())
		case <-l.stop:
			return
		}
	}
}

// begin begins the next pass. It returns its number and the number of checks.
func (l *Loop) begin() (pass int64, checks int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ticks++
	return l.ticks, len(l.checks)
}

// pass calls every check that is due, until a later pass begins.
func (l *Loop) pass(number int64, left int) {
	for c := l.next(number, &left); c != nil; c = l.next(number, &left) {
		l.call(c)
	}
}

// next returns the next check of a pass, or nil at the end of the pass. left is the number of checks that the pass has
// not seen yet.
func (l *Loop) next(pass int64, left *int) *check {
	l.mu.Lock()
	defer l.mu.Unlock()
	for ; *left > 0 && pass == l.ticks && len(l.checks) > 0; *left-- {
		c := l.checks[l.at%len(l.checks)]
		l.at = (l.at + 1) % len(l.checks)
		if !c.running && c.due <= pass {
			c.running, c.due = true, pass+c.every
			*left--
			return c
		}
	}
	return nil
}

// call calls a check. A check that ends its goroutine is not called again.
func (l *Loop) call(c *check) {
	returned := false
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if c.running = false; !returned {
			l.remove(c)
		}
		l.idle.Broadcast()
	}()
	c.run()
	returned = true
}

// Due reports whether the caller shall carry out a task of the host, which its groups take turns at. It returns true
// once in each period d.
func (l *Loop) Due(task string, d time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	last, begun := l.turns[task]
	if begun && l.ticks-last < inTicks(d) {
		return false
	}
	l.turns[task] = l.ticks
	return true
}

// inTicks returns a period in ticks of the loop, at least one.
func inTicks(d time.Duration) int64 { return max(int64(d/HousekeepEvery), 1) }

// remove removes a check. The caller holds mu.
func (l *Loop) remove(c *check) {
	for i, other := range l.checks {
		if other == c {
			l.checks = append(l.checks[:i:i], l.checks[i+1:]...)
			return
		}
	}
}

// Checks are the checks of one group on a loop.
type Checks struct {
	loop *Loop
	all  []*check // guarded by loop.mu
}

// Join returns an empty set of checks on a loop.
func Join(l *Loop) *Checks { return &Checks{loop: l} }

// Every adds a check that the loop calls once in each period d, which is a multiple of HousekeepEvery. The first call
// is due after d.
func (s *Checks) Every(d time.Duration, run func()) {
	s.loop.mu.Lock()
	defer s.loop.mu.Unlock()
	every := inTicks(d)
	c := &check{run: run, every: every, due: s.loop.ticks + every}
	s.all, s.loop.checks = append(s.all, c), append(s.loop.checks, c)
}

// Leave removes the checks of the set, and returns when none of them runs.
func (s *Checks) Leave() {
	s.loop.mu.Lock()
	defer s.loop.mu.Unlock()
	for _, c := range s.all {
		s.loop.remove(c)
	}
	for _, c := range s.all {
		for c.running {
			s.loop.idle.Wait()
		}
	}
}
