package evloop

import (
	"fmt"
	"syscall"
	"time"
)

const (
	// eventsAtOnce are taken in one call: enough to make the call cheap, few enough
	// to leave some for a helper and to look again soon.
	eventsAtOnce = 4
	// behindSpan without a pause makes a poller call for help when it takes as many events
	// as it can. To wake another processor takes about as long, and who has been behind
	// for so long may well be for as long again.
	behindSpan = 50 * time.Microsecond
	// busySpan without a pause makes it call for help however few it takes: two
	// connections with long pipelines never are more than that.
	busySpan = time.Millisecond
	// pause is longer than it takes to be told of what is ready already.
	pause = 5 * time.Microsecond
)

// poller takes what connections have become ready and runs their turns.
type poller struct {
	group  *Group
	helper bool // leaves when there is nothing to do, and never waits
	events [eventsAtOnce]syscall.EpollEvent
	next   int // events[next:n] are to be looked at
	n      int
	idleAt time.Time // when it last had nothing to do
}

// run polls until the group is closed, a helper has nothing to do, or another
// goroutine has taken the poller over.
func (p *poller) run() {
	for {
		for p.next < p.n {
			e := p.events[p.next]
			p.next++
			if !p.handle(e) {
				return // another goroutine goes on here
			}
		}
		if !p.fetch() {
			p.group.ended.Done()
			return
		}
	}
}

// handle runs the turn of the connection that e is about. It reports false when
// that has taken this goroutine away from the poller.
func (p *poller) handle(e syscall.EpollEvent) bool {
	c := p.group.of(e)
	if c == nil {
		return true
	}
	c.note(e.Events)
	if !c.claim() {
		return true
	}
	return c.turns(p)
}

// fetch gets the next events. It reports false when the poller is to end.
func (p *poller) fetch() bool {
	if p.group.closed.Load() {
		return false
	}
	if p.helper {
		p.next, p.n = 0, p.wait(0)
		if p.n == 0 {
			p.group.helpers.Add(-1)
		}
		return p.n > 0
	}
	before := time.Now()
	p.next, p.n = 0, p.wait(-1)
	now := time.Now()
	if now.Sub(before) > pause {
		p.idleAt = now
	} else if p.overloaded(now.Sub(p.idleAt)) {
		p.idleAt = now
		p.group.callHelper()
	}
	return true
}

// overloaded reports whether a poller that has been busy for some time needs help.
func (p *poller) overloaded(busy time.Duration) bool {
	return busy > busySpan || busy > behindSpan && p.n == len(p.events)
}

// wait asks for events, for at most timeoutMs; -1: for as long as it takes.
func (p *poller) wait(timeoutMs int) int {
	n, err := syscall.EpollWait(p.group.epoll, p.events[:], timeoutMs)
	if err != nil && err != syscall.EINTR {
		panic(fmt.Sprintf("epoll_wait: %v", err)) // the descriptor is ours and open: no other error is possible
	}
	return max(n, 0)
}

// callHelper starts another poller, if there may be one more.
func (g *Group) callHelper() {
	if n := g.helpers.Add(1); n > maxHelpers() {
		g.helpers.Add(-1)
		return
	}
	g.ended.Add(1)
	go (&poller{group: g, helper: true}).run()
}
