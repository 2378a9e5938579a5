package bench

import (
	"context"
	"time"
)

// maxAhead bounds the pipelines that wait for their answers on one connection.
// Beyond it sending waits; what is sent late counts as late.
const maxAhead = 1024

// steady sends at a rate until stop is closed, an open loop: requests leave when
// they are due, whether the last are answered or not, and an answer's latency counts
// from when its request was due. So a stall shows in every request it delays. What
// is under way when it stops is still answered and recorded.
func (s *swarm) steady(ctx context.Context, stop <-chan struct{}, keys int, perSecond float64, record func(due, came time.Time, answers tally)) error {
	every := time.Duration(float64(len(s.links)*s.pipeline) / perSecond * float64(time.Second))
	started := time.Now()
	return s.each(ctx, func(ctx context.Context, i int, l *link) error {
		first := started.Add(every * time.Duration(i) / time.Duration(len(s.links))) // spread evenly
		due := make(chan time.Time, maxAhead)
		sent := make(chan error, 1)
		go func() {
			defer close(due)
			sent <- l.sendOnTime(ctx, stop, keys, first, every, due)
		}()
		err := l.receiveAll(due, record)
		if err != nil {
			_ = l.conn.Close() // the sender fails too, and ends
			for range due {
			}
		}
		if sendErr := <-sent; err == nil {
			err = sendErr
		}
		return err
	})
}

// sendOnTime sends a pipeline whenever one is due, and tells when that was.
func (l *link) sendOnTime(ctx context.Context, stop <-chan struct{}, keys int, next time.Time, every time.Duration, due chan<- time.Time) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ; ; next = next.Add(every) {
		timer.Reset(time.Until(next)) // at once when it is late
		select {
		case <-stop:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
		}
		l.randomKeys(keys)
		if err := l.send(); err != nil {
			return err
		}
		due <- next
	}
}

// receiveAll reads the answers to pipelines in the order in which they were sent.
func (l *link) receiveAll(due <-chan time.Time, record func(due, came time.Time, answers tally)) error {
	for at := range due {
		answers, err := l.receive()
		if err != nil {
			return err
		}
		record(at, time.Now(), answers)
	}
	return nil
}
