package service

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestPausesThatBeginTogetherEndTogether checks that concurrent calls of Begin count as one pause in slowPath. After
// End, commands take the fast path again.
func TestPausesThatBeginTogetherEndTogether(t *testing.T) {
	slowPath := new(atomic.Int32)
	p := newPauser(slowPath)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 2000 {
				p.Begin(time.Hour, false)
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 1, slowPath.Load())
	p.End()
	require.Zero(t, slowPath.Load())
}
