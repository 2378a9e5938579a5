package httpapi

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// ask joins the next call, and waits at most wait for its result.
func (p *readyProbe) ask(question func() error, wait time.Duration) error {
	late, end := context.WithTimeout(context.Background(), wait)
	defer end()
	return p.join(question).await(late)
}

// TestProbesShareAQuestion checks that one call runs at a time for any number of probes. Each probe gets the result of
// a call that began after the probe arrived, or an error when its wait has passed.
func TestProbesShareAQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p readyProbe
		var under, most, asked atomic.Int64
		question := func() error {
			asked.Add(1)
			most.Store(max(most.Load(), under.Add(1)))
			time.Sleep(time.Second / 2)
			under.Add(-1)
			return nil
		}
		var probes sync.WaitGroup
		for range 100 {
			probes.Go(func() { assert.NoError(t, p.ask(question, time.Minute)) })
			time.Sleep(time.Millisecond)
		}
		probes.Wait()
		assert.EqualValues(t, 1, most.Load())
		assert.EqualValues(t, 2, asked.Load())
		assert.ErrorIs(t, p.ask(func() error { time.Sleep(time.Minute); return nil }, time.Second), errNotApplied)
		time.Sleep(time.Hour)
		p.mu.Lock()
		defer p.mu.Unlock()
		assert.False(t, p.running, "who asks ends")
	})
}
