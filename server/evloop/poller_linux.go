package evloop

import (
	"fmt"
	"syscall"
	"time"
)

const (
	// eventsAtOnce is the number of events taken in one call. It makes the call cheap, leaves events for a helper, and
	// keeps the interval between calls short.
	eventsAtOnce = 4
	// behindSpan is the busy time after which a poller with full event batches starts a helper. Waking another
	// processor takes about as long. A poller that was behind for so long is likely to stay behind as long again.
	behindSpan = 50 * time.Microsecond
	// busySpan is the busy time after which a poller always starts a helper. Two connections with long pipelines never
	// fill an event batch.
	busySpan = time.Millisecond
	// pause is longer than an epoll_wait takes when events are pending. A poller whose call took longer was idle.
	pause = 5 * time.Microsecond
)

// poller takes events of ready connections and runs their read cycles.
type poller struct {
	group  *Group
	helper bool // ends when no event is pending, and never waits
	events [eventsAtOnce]syscall.EpollEvent
	next   int // events[next:n] are still to be handled
	n      int
	idleAt time.Time // when the poller was last idle or started a helper
}

// run polls until the group is closed, a helper finds no event, or another goroutine has taken over the poller.
func (p *poller) run() {
	for {
		for p.next < p.n {
			e := p.events[p.next]
			p.next++
			if !p.handle(e) {
				return // another goroutine continues here
			}
		}
		if !p.fetch() {
			p.group.ended.Done()
			return
		}
	}
}

// handle runs the read cycle of the connection of e. It returns false if the read cycle has detached: another goroutine
// then runs the poller, and this one must end.
func (p *poller) handle(e syscall.EpollEvent) bool {
	c := p.group.of(e)
	if c == nil {
		return true
	}
	c.note(e.Events)
	if !c.claim() {
		return true
	}
	return c.runCycles(p)
}

// fetch takes the next events. It reports false if the poller must end.
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

// overloaded reports whether a poller that was busy for the given time needs a helper.
func (p *poller) overloaded(busy time.Duration) bool {
	return busy > busySpan || busy > behindSpan && p.n == len(p.events)
}

// wait waits for events for at most timeoutMs. -1 means without a bound.
func (p *poller) wait(timeoutMs int) int {
	n, err := syscall.EpollWait(p.group.epoll, p.events[:], timeoutMs)
	if err != nil && err != syscall.EINTR {
		panic(fmt.Sprintf("epoll_wait: %v", err)) // the descriptor is open: no other error is possible
	}
	return max(n, 0)
}

// callHelper starts another poller, unless maxHelpers run.
func (g *Group) callHelper() {
	if n := g.helpers.Add(1); n > maxHelpers() {
		g.helpers.Add(-1)
		return
	}
	g.ended.Add(1)
	go (&poller{group: g, helper: true}).run()
}
