package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"time"

	"github.com/weir-project/weir/bench/connpoll"
	"github.com/weir-project/weir/bench/servers"
)

// maxAhead bounds the pipelines that wait for their answers on one connection. Beyond it sending waits, and pipelines
// that are sent late count as late.
const maxAhead = 1024

// maxAheadInAll bounds the waiting pipelines on all connections, to some tens of MB.
const maxAheadInAll = 1 << 19

const (
	// longestPause is how long the end of a schedule may go unnoticed.
	longestPause = 10 * time.Millisecond
	// fullPause is the pause of a connection that accepts no more data.
	fullPause = 100 * time.Microsecond
)

// schedule says when pipelines are due: at regular intervals, on the connections in turn.
type schedule struct {
	perSecond float64 // requests
	pipelines int     // total number; 0 for all that are due until the end
	until     <-chan struct{}
}

// over reports whether the schedule was ended from outside.
func (p schedule) over() bool {
	select {
	case <-p.until:
		return true
	default:
		return false
	}
}

// open sends as scheduled. Requests leave when they are due, whether the last ones are answered or not. The latency of
// an answer counts from when its request was due, so a stall shows in every request that it delays. Pending requests at
// the end are still answered and recorded. lag, unless nil, records how late pipelines left. The connections are closed
// afterwards.
func (s *swarm) open(ctx context.Context, plan schedule, lag *histogram,
	record func(link int, due, came time.Time, answers tally)) error {
	ended := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the changed thread ends with this goroutine
		ended <- s.openLoop(ctx, plan, lag, record)
	}()
	return <-ended
}

func (s *swarm) openLoop(ctx context.Context, plan schedule, lag *histogram,
	record func(int, time.Time, time.Time, tally)) error {
	w, err := s.takeConns()
	if err != nil {
		return err
	}
	loop := openLoop{
		ctx: ctx, poller: w, links: s.links, calls: make([]outstanding, len(s.links)),
		ahead: min(maxAhead, 1+maxAheadInAll/len(s.links)), record: record, lag: lag,
	}
	return errors.Join(loop.run(plan, float64(s.pipeline)), w.Close())
}

// openLoop is one run of an open loop.
type openLoop struct {
	ctx    context.Context
	poller connpoll.Poller
	links  []*link
	calls  []outstanding // by link
	ahead  int           // pipelines that may be pending on a link
	record func(link int, due, came time.Time, answers tally)
	lag    *histogram // or nil

	now    time.Time // time of the last check
	under  int       // pending pipelines
	looked time.Time // time of the last check for stuck links
}

// run sends pipelines when they are due, and waits for the answers to all of them.
func (o *openLoop) run(plan schedule, pipeline float64) error {
	every := pipeline / plan.perSecond * float64(time.Second)
	started := time.Now()
	o.now, o.looked = started, started
	for n := 0; plan.pipelines == 0 || n < plan.pipelines; n++ {
		at := started.Add(time.Duration(every * float64(n)))
		if err := o.until(at, plan); err != nil {
			return err
		}
		if plan.over() {
			break
		}
		if err := o.send(n%len(o.links), at); err != nil {
			return err
		}
	}
	for o.under > 0 {
		if err := o.take(longestPause); err != nil {
			return err
		}
	}
	return nil
}

// until takes answers until a pipeline is due, at least once.
func (o *openLoop) until(at time.Time, plan schedule) error {
	for {
		if err := o.take(time.Until(at)); err != nil || !o.now.Before(at) || plan.over() {
			return err
		}
	}
}

// send sends the pipeline that was due on a link at a time.
func (o *openLoop) send(i int, at time.Time) error {
	l, calls := o.links[i], &o.calls[i]
	for calls.count() >= o.ahead {
		if err := o.take(longestPause); err != nil {
			return err
		}
	}
	if o.lag != nil {
		o.lag.record(o.now.Sub(at), 1)
	}
	l.nextKeys()
	calls.push(at, o.now)
	o.under++
	for rest := l.out.encoded; ; {
		n, err := o.poller.Write(i, rest)
		if rest = rest[n:]; err != nil || len(rest) == 0 {
			return err
		}
		if err := o.take(fullPause); err != nil {
			return err
		}
	}
}

// take waits for answers, for at most d, and records them.
func (o *openLoop) take(d time.Duration) error {
	ready, err := o.poller.Wait(min(max(d, 0), longestPause))
	if err != nil {
		return err
	}
	for _, i := range ready {
		if err := o.receive(i); err != nil {
			return err
		}
	}
	if o.now = time.Now(); o.now.Sub(o.looked) > deadlineEvery {
		if err := o.lookForStuck(); err != nil {
			return err
		}
	}
	return context.Cause(o.ctx)
}

var errSurplus = fmt.Errorf("%w: more answers than requests", ErrNotADecision)

// receive records the answers that have arrived on a link.
func (o *openLoop) receive(i int) error {
	l, calls := o.links[i], &o.calls[i]
	for {
		err := l.in.tallyOn(&calls.answers, l.out.expects)
		switch {
		case err == connpoll.ErrNotYet && calls.count() == 0 && (calls.answers.answers > 0 || l.in.r < l.in.w):
			return errSurplus
		case err == connpoll.ErrNotYet:
			return nil
		case err != nil:
			return err
		case calls.count() == 0:
			return errSurplus
		}
		now := time.Now()
		due, answers := calls.pop(now)
		o.under--
		o.record(i, due, now, answers)
		if l.in.r == l.in.w {
			return nil
		}
	}
}

// lookForStuck finds a link without answers.
func (o *openLoop) lookForStuck() error {
	o.looked = o.now
	for i := range o.calls {
		if c := &o.calls[i]; c.count() > 0 && o.now.Sub(c.since) > servers.ReplyTimeout {
			return fmt.Errorf("%w: no answer for %v", ErrStuck, servers.ReplyTimeout)
		}
	}
	return nil
}

// outstanding are the pending pipelines of a link.
type outstanding struct {
	due     []time.Time // when each pipeline was due; those from next on are pending
	next    int
	since   time.Time // when the last answer came, or the first pipeline left
	answers tally     // to the pipeline at next
}

func (c *outstanding) count() int { return len(c.due) - c.next }

func (c *outstanding) push(at, now time.Time) {
	if c.count() == 0 {
		c.since = now
	}
	if 2*c.next >= len(c.due) { // half of it is consumed
		c.due, c.next = c.due[:copy(c.due, c.due[c.next:])], 0
	}
	c.due = append(c.due, at)
}

func (c *outstanding) pop(now time.Time) (due time.Time, answers tally) {
	due, answers = c.due[c.next], c.answers
	c.next++
	c.since, c.answers = now, tally{}
	return due, answers
}

// takeConns moves the connections to a poller. Afterwards the links only read.
func (s *swarm) takeConns() (connpoll.Poller, error) {
	w, err := connpoll.New(mapOf(s.links, func(l *link) net.Conn { return l.conn }))
	if err != nil {
		return nil, err
	}
	for i, l := range s.links {
		l.conn, l.in.in = nil, polledConn{w, i}
	}
	return w, nil
}

// polledConn reads from one connection of a poller.
type polledConn struct {
	poller connpoll.Poller
	i      int
}

func (c polledConn) Read(b []byte) (int, error) { return c.poller.Read(c.i, b) }
