package client

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestWaitsOfCenturies checks that a wait above the longest duration, 292 years, becomes no short one.
func TestWaitsOfCenturies(t *testing.T) {
	rule := TokenBucket(PerSecond(1), 10)
	q := Request{Rule: rule, Key: "k", MaxWait: time.Hour}
	const ms = 213504 * 86400_000
	d := decisionFrom(&q, [5]int64{0, 0, ms, ms, 213504})
	require.EqualValues(t, math.MaxInt64, d.RetryAfter)
	require.EqualValues(t, math.MaxInt64, d.ResetAfter)
	v := verdictOf([]Request{q}, []Decision{d})
	require.EqualValues(t, math.MaxInt64, v.atLeast, "the sum with MaxWait")
	require.False(t, v.admitted)
	d = decisionFrom(&q, [5]int64{0, 0, -1, -1, 10})
	require.Equal(t, Never, d.RetryAfter)
	require.True(t, verdictOf([]Request{q}, []Decision{d}).never)
}
