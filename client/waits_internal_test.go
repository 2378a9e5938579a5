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
	require.Equal(t, Never-1, d.RetryAfter)
	require.Equal(t, Never-1, d.ResetAfter)
	v := verdictOf([]Request{q}, []Decision{d})
	require.EqualValues(t, math.MaxInt64, v.atLeast, "the sum with MaxWait")
	require.False(t, v.admitted)
	d = decisionFrom(&q, [5]int64{0, 0, -1, -1, 10})
	require.Equal(t, Never, d.RetryAfter)
	require.True(t, verdictOf([]Request{q}, []Decision{d}).never)
}

// TestNeverIsNoShortSleep checks that a program that sleeps for the RetryAfter of any denial does not spin.
func TestNeverIsNoShortSleep(t *testing.T) {
	q := Request{Rule: Fixed(time.Hour, 1), Key: "k", Cost: 2}
	d := decisionFrom(&q, [5]int64{0, 1, -1, -1, 1})
	require.Equal(t, Never, d.RetryAfter)
	require.Greater(t, d.RetryAfter, 100*365*24*time.Hour)
	require.Zero(t, newRefusal(d).good, "a lease must ask weir again, because only weir knows what ends it")
	m := newDenials(1)
	m.remember(&q, &d, time.Now())
	require.Empty(t, m.keys)
}
