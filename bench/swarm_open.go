package bench

import (
	"context"
	"runtime"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// maxAhead bounds the pipelines that wait for their answers on one connection.
// Beyond it sending waits; what is sent late counts as late.
const maxAhead = 1024

// maxAheadInAll bounds them on all connections, by some 12 MB: room that is made before the
// first is sent, and would hold up many connections.
const maxAheadInAll = 1 << 19

// longestPause is how long the end of a schedule may go unnoticed.
const longestPause = 10 * time.Millisecond

// schedule is when pipelines are due: evenly, the connections in turn.
type schedule struct {
	perSecond float64 // requests
	pipelines int     // how many in all; 0 for as long as until is open
	until     <-chan struct{}
	pause     func(time.Duration) // sleeps; nil for the system's clock
}

// open sends as scheduled: requests leave when they are due, whether the last are
// answered or not, and an answer's latency counts from when its request was due. So a
// stall shows in every request it delays. What is under way at the end is still
// answered and recorded. lag, unless nil, takes how late pipelines left.
func (s *swarm) open(ctx context.Context, plan schedule, lag *hdr.Histogram, record func(link int, due, came time.Time, answers tally)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ahead := min(maxAhead, 1+maxAheadInAll/len(s.links))
	due := mapOf(s.links, func(*link) chan time.Time { return make(chan time.Time, ahead) })
	paced := make(chan struct{})
	go func() {
		defer close(paced)
		if err := s.pace(ctx, plan, due, lag); err != nil {
			cancel(err)
		}
		for _, d := range due {
			close(d)
		}
	}()
	err := s.each(ctx, func(_ context.Context, i int, l *link) error {
		err := l.receiveAll(due[i], func(at, came time.Time, answers tally) { record(i, at, came, answers) })
		if err != nil {
			cancel(err)
		}
		return err
	})
	<-paced
	return err
}

// pace sends every pipeline when it is due, from one thread of its own: it sleeps by
// the system's clock, which wakes it within some ten microseconds, and a runtime's
// timer within a millisecond.
func (s *swarm) pace(ctx context.Context, plan schedule, due []chan time.Time, lag *hdr.Histogram) error {
	pause := plan.pause
	if pause == nil {
		runtime.LockOSThread() // never unlocked: the thread, changed for this, ends with us
		sharpenSleep()
		pause = sleep
	}
	every := float64(s.pipeline) / plan.perSecond * float64(time.Second)
	started := time.Now()
	for n := 0; plan.pipelines == 0 || n < plan.pipelines; n++ {
		at := started.Add(time.Duration(every * float64(n)))
		now := time.Now()
		for ; now.Before(at) && !plan.over() && ctx.Err() == nil; now = time.Now() {
			pause(min(at.Sub(now), longestPause))
		}
		if plan.over() {
			return nil
		}
		if lag != nil {
			recordTo(lag, now.Sub(at), 1)
		}
		l := s.links[n%len(s.links)]
		l.nextKeys()
		if err := l.send(now); err != nil {
			return err
		}
		select {
		case due[n%len(s.links)] <- at:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
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

// receiveAll reads the answers to pipelines in the order in which they were sent.
func (l *link) receiveAll(due <-chan time.Time, record func(due, came time.Time, answers tally)) error {
	for at := range due {
		answers, err := l.receive(time.Now())
		if err != nil {
			return err
		}
		record(at, time.Now(), answers)
	}
	return nil
}
