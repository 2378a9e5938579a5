package queue

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore/wire"
)

// TestExpiryEmptiesTheQueue checks that a transfer of leadership which waits for an empty queue continues when the
// waiting batches expire.
func TestExpiryEmptiesTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(0, nil)
		defer q.Close()
		b, err := q.Special(wire.Tick)
		require.NoError(t, err)
		empty := make(chan struct{})
		go func() {
			q.Empty(t.Context())
			close(empty)
		}()
		synctest.Wait()
		q.Expire(-1)
		require.ErrorIs(t, b.Err, limiter.ErrTryAgain)
		synctest.Wait()
		select {
		case <-empty:
		default:
			require.Fail(t, "the handover must continue")
		}
	})
}
