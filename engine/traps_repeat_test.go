package engine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
)

// These tests cover repeated requests.

// TestTrapRetriedAcquireTakesOneSlot checks that a repeated acquire by the same holder is a renewal and takes no
// second slot.
func TestTrapRetriedAcquireTakesOneSlot(t *testing.T) {
	b := newProbe()
	l := windowOf(engine.Concurrency, 0, 2)
	for range 5 {
		d := b.do(engine.Op{Limit: l, Cost: 1, Text: []byte("worker 7"), TTLNs: 60e9})
		require.EqualValues(t, 1, d.Allowed)
		require.EqualValues(t, 1, d.Remaining)
	}
	b.nowNs += 60e9
	require.Zero(t, b.table.Len(engine.Stamp{NowNs: b.nowNs}), "an abandoned lease must expire")
}

// TestTrapRetriedRequestCountsOnce checks that a request which is repeated after a lost reply counts once.
func TestTrapRetriedRequestCountsOnce(t *testing.T) {
	forAllOfTen(t, func(t *testing.T, b *probe, l engine.Limit) {
		op := engine.Op{Limit: l, Cost: 4, ID: []byte("token"), Text: []byte("x"), TTLNs: 600e9}
		first := b.do(op)
		for range 10 {
			b.nowNs += 5e9
			require.Equal(t, first, b.do(op))
		}
		refund := engine.Op{Code: engine.OpRefund, Cost: 1, ID: []byte("another")}
		back := b.do(refund)
		require.Equal(t, back, b.do(refund))
	})
}
