package pipeline

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/raftstore/internal/queue"
)

var oneBucket = engine.Op{
	Key: []byte("key"), Cost: 1,
	Limit: engine.Limit{Algorithm: engine.TokenBucket, Rate: engine.Rate{Units: 1, PerNs: int64(time.Second)}, Max: 2},
}

func TestOnlyARunOfDenialsIsSure(t *testing.T) {
	var d denials
	for range EarlyCheckAfter {
		require.False(t, d.sure())
		d.saw(true)
	}
	require.True(t, d.sure())
	d.saw(true)
	d.saw(false)
	require.False(t, d.sure(), "an admission must end the row of denials")
}

// TestAnEntryTakesSoManyOperations checks that an entry takes a bounded number and size of operations, but always at
// least one.
func TestAnEntryTakesSoManyOperations(t *testing.T) {
	small := make([]engine.Op, queue.MaxEntryOps+1)
	for i := range small {
		small[i] = oneBucket
	}
	require.Equal(t, queue.MaxEntryOps, fitting(small))
	require.Equal(t, queue.MaxEntryOps, fitting(small[:queue.MaxEntryOps]))
	require.Equal(t, queue.MaxEntryOps-1, fitting(small[:queue.MaxEntryOps-1]))
	large := oneBucket
	large.Key = make([]byte, queue.MaxEntryBytes+1)
	require.Equal(t, 1, fitting([]engine.Op{large, oneBucket}))
	require.Equal(t, 1, fitting([]engine.Op{oneBucket, large}))
}
