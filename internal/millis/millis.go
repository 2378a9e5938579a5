// Package millis converts the milliseconds of replies to durations. It promises that no number wraps: a number beyond
// the longest duration, 292 years, becomes the longest duration.
package millis

import (
	"math"
	"time"
)

// Never is the duration until an event that does not happen. Replies have -1 for it. It is the longest duration, so
// that a program that sleeps for it sleeps.
const Never = time.Duration(math.MaxInt64)

// Duration converts milliseconds.
func Duration(ms int64) time.Duration {
	const most = math.MaxInt64 / int64(time.Millisecond)
	switch {
	case ms > most:
		return math.MaxInt64
	case ms < -most:
		return math.MinInt64
	}
	return time.Duration(ms) * time.Millisecond
}

// Wait converts the milliseconds of a wait. A negative number is Never, and no other number is.
func Wait(ms int64) time.Duration {
	if ms < 0 {
		return Never
	}
	return min(Duration(ms), Never-1)
}
