package script

import (
	"math"

	"github.com/weir-project/weir/engine/internal/arith"
)

// redis-gcra, for Node, keeps the theoretical arrival time of a GCRA under one key, in milliseconds of the client's
// clock. Its answer has four numbers:
//
//   - the milliseconds by which the request is late enough (negative: too early), as a double
//   - the milliseconds between two units as a double, negative if the request is limited
//   - the remaining units
//   - the milliseconds until the limiter is idle

// redisGCRA has the arguments now ms, burst, rate, period ms, cost.
func redisGCRA(r *Run) {
	nowMs, emissionMs := r.arg[0], r.arg[3]/r.arg[2]
	incrementMs, burstMs := float64(emissionMs*r.arg[4]), GCRABurstMs(r.arg[1], r.arg[2], r.arg[3])
	tatMs := nowMs
	if r.live {
		tatMs = math.Max(fromBits(r.record.words[0]), nowMs)
	}
	nextMs := tatMs + incrementMs
	diffMs := nowMs - (nextMs - burstMs)
	remaining := math.Floor(diffMs / emissionMs)
	switch {
	case remaining < 0:
		remaining = math.Floor((nowMs - (tatMs - burstMs)) / emissionMs)
		nextMs = tatMs
	case remaining == 0 && incrementMs <= 0: // a dry run on a limiter that is used up
	default:
		r.Admitted = true
	}
	resetMs := arith.Truncate(math.Ceil(nextMs - nowMs))
	if r.Admitted && incrementMs > 0 {
		r.put(toBits(nextMs))
		r.expireMs(resetMs)
	}
	r.gcraAnswers(diffMs, emissionMs, arith.Truncate(remaining), resetMs)
}

func (r *Run) gcraAnswers(diffMs, emissionMs float64, remaining, resetMs int64) {
	if !r.Admitted {
		emissionMs = -emissionMs
	}
	r.answers(toBits(diffMs), toBits(emissionMs), remaining, resetMs)
}

// GCRABurstMs returns the time that a full burst spans.
func GCRABurstMs(burst, rate, periodMs float64) float64 { return float64(periodMs / rate * burst) }

// redisGCRABlocked denies until the block ends.
func redisGCRABlocked(r *Run, leftMs int64) {
	leftMs = blockedForMs(leftMs)
	r.gcraAnswers(-float64(leftMs), r.arg[3]/r.arg[2], 0, leftMs)
}
