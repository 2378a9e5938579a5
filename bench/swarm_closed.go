package bench

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// fill sends a request for each of the keys from 0, and makes sure that each is
// admitted: nothing else leaves a limiter behind.
func (s *swarm) fill(ctx context.Context, keys int) error {
	return s.each(ctx, func(_ context.Context, i int, l *link) error {
		from, end := i*keys/len(s.links), (i+1)*keys/len(s.links)
		for ; from < end; from += l.n {
			for r := range l.n {
				l.out.setKey(r, min(from+r, end-1))
			}
			if err := l.sendAndReceive(); err != nil {
				return err
			}
		}
		return nil
	})
}

// sendAndReceive is one turn of a closed loop, in which everything has to be
// admitted.
func (l *link) sendAndReceive() error {
	if err := l.send(); err != nil {
		return err
	}
	answers, err := l.receive()
	if err == nil && answers.admitted != answers.answers {
		err = fmt.Errorf("%w: %d of %d requests for fresh keys are admitted %s",
			ErrNotADecision, answers.admitted, answers.answers, answers.said)
	}
	return err
}

// top is how many decisions a second there are when every connection sends its next
// pipeline as soon as the last is answered.
func (s *swarm) top(ctx context.Context, keys int, lasting time.Duration) (perSecond float64, err error) {
	started := time.Now()
	var answered atomic.Int64
	err = s.each(ctx, func(_ context.Context, _ int, l *link) error {
		for time.Since(started) < lasting {
			l.randomKeys(keys)
			if err := l.sendAndReceive(); err != nil {
				return err
			}
			answered.Add(int64(l.n))
		}
		return nil
	})
	return float64(answered.Load()) / time.Since(started).Seconds(), err
}
