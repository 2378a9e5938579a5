package queue

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/wire"
)

// TestExpiryEmptiesTheQueue checks that a transfer of leadership which waits for an empty queue continues when the
// waiting batches expire.
func TestExpiryEmptiesTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(0, NewHostWindow())
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

// TestNoInvalidOperationIsQueued checks that an invalid operation, at any place in a call, keeps the call out of the
// log. Every member would apply such an entry, so the queue is the last place to refuse it.
func TestNoInvalidOperationIsQueued(t *testing.T) {
	q := New(0, NewHostWindow())
	defer q.Close()
	good := func() engine.Op { return engine.Op{Code: engine.OpReset, Key: []byte("k")} }
	for name, bad := range map[string]engine.Op{
		"no key":          {Code: engine.OpReset},
		"a long key":      {Code: engine.OpReset, Key: make([]byte, engine.MaxKeyLen+1)},
		"negative cost":   {Code: engine.OpRefund, Key: []byte("k"), Cost: -1},
		"no such code":    {Code: 255, Key: []byte("k")},
		"a reserved name": {Code: engine.OpTake, Key: engine.LimiterName("p", 0, []byte("k"))},
	} {
		for _, ops := range [][]engine.Op{{bad}, {good(), bad}, {bad, good()}} {
			_, _, err := q.Add(ops, false, false)
			require.ErrorIs(t, err, failure.ErrInvalidOp, name)
		}
	}
	require.Empty(t, q.Batches)
	_, _, err := q.Add([]engine.Op{good()}, false, false)
	require.NoError(t, err)
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
