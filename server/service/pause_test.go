package service

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAPauseReplacesAnother: who waits for the first waits for the second, and the end of
// the second is the end.
func TestAPauseReplacesAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var attention atomic.Int32
		p := newPauser(&attention)
		p.Begin(time.Hour, false)
		done := make(chan struct{})
		go func() {
			defer close(done)
			p.Wait(&Command{}, nil)
		}()
		synctest.Wait()
		start := time.Now()
		p.Begin(time.Second, false)
		require.EqualValues(t, 1, attention.Load())
		<-done
		require.Equal(t, time.Second, time.Since(start))
		require.Zero(t, attention.Load())

		p.Begin(time.Hour, false)
		p.Begin(time.Hour, true)
		p.Wait(&Command{}, nil) // only writes are held back now
		p.End()
		p.End()
		require.Zero(t, attention.Load())
	})
}
