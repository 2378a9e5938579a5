package queue

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/wire"
)

// TestExpiryEmptiesTheQueue: a handover that waits for the queue to be empty learns at once
// that what it waited for is given up.
func TestExpiryEmptiesTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(0)
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
		require.ErrorIs(t, b.Err, failure.ErrTryAgain)
		synctest.Wait()
		select {
		case <-empty:
		default:
			require.Fail(t, "the handover still waits")
		}
	})
}
