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

// TestAShortEntryKeepsNoBuffer checks that the bytes of an entry are as long as needed, because the Raft library keeps
// them.
func TestAShortEntryKeepsNoBuffer(t *testing.T) {
	b := NewBatch(wire.Tick, 1)
	b.Data = append(b.Data, "note"...)
	require.Equal(t, b.Data, b.Entry())
	require.Less(t, cap(b.Entry()), 2*len(b.Data)+16)
	b.Data = append(b.Data, make([]byte, 2000)...)
	require.Same(t, &b.Data[0], &b.Entry()[0], "a long entry must not be copied")
}
