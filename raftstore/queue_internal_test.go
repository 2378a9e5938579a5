package raftstore

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
		q := newQueue(0)
		defer q.close()
		b, err := q.special(wire.Tick)
		require.NoError(t, err)
		empty := make(chan struct{})
		go func() {
			q.empty(t.Context())
			close(empty)
		}()
		synctest.Wait()
		q.expire(-1)
		require.ErrorIs(t, b.err, failure.ErrTryAgain)
		synctest.Wait()
		select {
		case <-empty:
		default:
			require.Fail(t, "the handover still waits")
		}
	})
}
