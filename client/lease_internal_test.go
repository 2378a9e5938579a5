package client

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestLeasedUnitsEndWithTheirWindow checks that leased units expire when the limiter no longer counts them as used.
func TestLeasedUnitsEndWithTheirWindow(t *testing.T) {
	l := &Lease{q: Request{Rule: FixedFirst(time.Minute, 9)}, maxAge: time.Hour, start: time.Now(),
		filling: make(chan struct{}, 1)}
	_, err := l.put(Decision{Granted: 3, ResetAfter: time.Minute}, time.Now())
	require.NoError(t, err)
	b := l.batch.Load()
	require.True(t, b.timer.Stop())
	require.LessOrEqual(t, b.untilNs, int64(time.Since(l.start)+time.Minute))

	b.untilNs, l.closed = 0, true
	_, err = l.Take(t.Context())
	require.ErrorIs(t, err, ErrClosed, "expired units must not be handed out")
	require.EqualValues(t, 2, b.left.Load(), "the caller's unit must be taken from the three")
}

// TestLeaseRefusalsEnd checks that a refused lease asks again after a bounded time, because the limiter may have been
// reset.
func TestLeaseRefusalsEnd(t *testing.T) {
	require.Equal(t, maxDenialAge, newRefusal(Decision{RetryAfter: time.Hour, Source: FromServer}).good)
	require.Equal(t, time.Second, newRefusal(Decision{RetryAfter: time.Second, Source: FromServer}).good)
	require.Equal(t, maxProbePause, newRefusal(Decision{RetryAfter: time.Hour, Source: FromFallback}).good)
}

// TestLeaseRefundsAllowForLateAnswers checks that the refund deadline counts from the request. A late answer reports
// a window that ends earlier than it seems.
func TestLeaseRefundsAllowForLateAnswers(t *testing.T) {
	l := &Lease{q: Request{Rule: FixedFirst(time.Minute, 9)}, maxAge: time.Hour}
	asked := time.Now().Add(-20 * time.Second)
	_, err := l.put(Decision{Granted: 3, ResetAfter: time.Minute}, asked)
	require.NoError(t, err)
	b := l.batch.Load()
	require.True(t, b.timer.Stop())
	require.Equal(t, asked.Add(time.Minute), b.refund)
}

// TestLeaseRefundsAreInTime checks that units of a sliding counter are refunded before its window ends, because they
// then belong to the previous window.
func TestLeaseRefundsAreInTime(t *testing.T) {
	d := Decision{ResetAfter: 90 * time.Second}
	require.Equal(t, 30*time.Second, (&Lease{q: Request{Rule: SlidingCounter(time.Minute, 9)}}).refundable(&d))
	require.Equal(t, 90*time.Second, (&Lease{q: Request{Rule: FixedFirst(time.Hour, 9)}}).refundable(&d))
}
