package bench

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// fill sends a request for each key from 0, and checks that each is admitted, because only an admitted request leaves a
// limiter behind.
func (s *swarm) fill(ctx context.Context, keys int) error {
	return s.each(ctx, func(_ context.Context, i int, l *link) error {
		from, end := i*keys/len(s.links), (i+1)*keys/len(s.links)
		for ; from < end; from += s.pipeline {
			for r := range s.pipeline {
				l.out.setKey(r, min(from+r, end-1))
			}
			answers, err := l.turn(time.Now())
			if err != nil {
				return err
			}
			if answers.admitted != answers.answers {
				return fmt.Errorf("%w: %d of %d requests for fresh keys are admitted %s",
					ErrNotADecision, answers.admitted, answers.answers, answers.said)
			}
		}
		return nil
	})
}

// turn sends a pipeline and reads its answers.
func (l *link) turn(now time.Time) (tally, error) {
	if err := l.send(now); err != nil {
		return tally{}, err
	}
	return l.receive(now)
}

// closed sends this many pipelines, or fewer if atMost is above zero and has passed. Every connection sends its next
// pipeline as soon as the last is answered. closed returns how many were sent.
func (s *swarm) closed(ctx context.Context, pipelines int, atMost time.Duration,
	record func(link int, took time.Duration, answers tally)) (sent int, err error) {
	var taken, done atomic.Int64
	started := time.Now()
	err = s.each(ctx, func(_ context.Context, i int, l *link) error {
		now := time.Now()
		for taken.Add(1) <= int64(pipelines) && (atMost == 0 || now.Sub(started) < atMost) {
			l.nextKeys()
			answers, err := l.turn(now)
			if err != nil {
				return err
			}
			done.Add(1)
			came := time.Now()
			record(i, came.Sub(now), answers)
			now = came
		}
		return nil
	})
	return int(done.Load()), err
}

// top returns the decisions per second of a closed loop.
func (s *swarm) top(ctx context.Context, lasting time.Duration) (perSecond float64, err error) {
	started := time.Now()
	var answered atomic.Int64
	err = s.each(ctx, func(_ context.Context, _ int, l *link) error {
		for now := started; now.Sub(started) < lasting; now = time.Now() {
			l.nextKeys()
			answers, err := l.turn(now)
			if err != nil {
				return err
			}
			if answers.errors > 0 {
				return fmt.Errorf("%w: %s", ErrNotADecision, answers.said)
			}
			answered.Add(answers.answers)
		}
		return nil
	})
	return float64(answered.Load()) / time.Since(started).Seconds(), err
}
