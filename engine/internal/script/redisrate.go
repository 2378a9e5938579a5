package script

import (
	"math"

	"github.com/weir-project/weir/engine/internal/arith"
)

// go-redis/redis_rate keeps the theoretical arrival time of a GCRA under one key, in seconds since 2017. Its scripts
// ask Redis for the time, which is limiter time here.
//
// Their answer has four numbers: allowed, remaining (both truncated to integers), seconds to wait (-1 if admitted), and
// seconds until the limiter is idle (both doubles).

// redisRateEpochS is subtracted from the time, so that more digits remain for its fraction: 2017-01-01.
const redisRateEpochS = 1483228800

// redisRate holds the values that both scripts compute first.
type redisRate struct {
	nowS, tatS float64
	emissionS  float64 // between two units
	burstS     float64 // span of a full burst
	cost       float64
}

func readRedisRate(r *Run) (g redisRate) {
	burst, rate, periodS := r.arg[0], r.arg[1], r.arg[2]
	g.cost = r.arg[3]
	g.emissionS = periodS / rate
	g.burstS = float64(g.emissionS * burst)
	nowUs := r.nowNs / 1e3
	g.nowS = float64(nowUs/1e6-redisRateEpochS) + float64(float64(nowUs%1e6)/1e6)
	g.tatS = g.nowS
	if r.live {
		g.tatS = math.Max(fromBits(r.record.words[0]), g.nowS)
	}
	return g
}

func redisRateAllowN(r *Run) {
	g := readRedisRate(r)
	nextS := g.tatS + float64(g.emissionS*g.cost)
	diffS := g.nowS - (nextS - g.burstS)
	remaining := diffS / g.emissionS
	if remaining < 0 {
		r.redisRateDenied(-diffS, g.tatS-g.nowS)
		return
	}
	r.redisRateAdmitted(&g, nextS, g.cost, remaining)
}

func redisRateAllowAtMost(r *Run) {
	g := readRedisRate(r)
	diffS := g.nowS - (g.tatS - g.burstS)
	remaining := diffS / g.emissionS
	if remaining < 1 {
		r.redisRateDenied(g.emissionS-diffS, g.tatS-g.nowS)
		return
	}
	cost := g.cost
	if remaining < cost {
		cost, remaining = remaining, 0
	} else {
		remaining -= cost
	}
	r.redisRateAdmitted(&g, g.tatS+float64(g.emissionS*cost), cost, remaining)
}

func (r *Run) redisRateDenied(retryS, resetS float64) {
	r.Answer = [4]int64{0, 0, toBits(retryS), toBits(resetS)}
}

func (r *Run) redisRateAdmitted(g *redisRate, tatS, cost, remaining float64) {
	resetS := tatS - g.nowS
	if resetS > 0 {
		r.put(toBits(tatS))
		r.expireMs(secondsToMs(math.Ceil(resetS)))
	}
	r.Admitted = true
	r.Answer = [4]int64{arith.Truncate(cost), arith.Truncate(remaining), toBits(-1), toBits(resetS)}
}

// redisRateBlocked denies until the block ends.
func redisRateBlocked(r *Run, leftMs int64) {
	leftS := float64(leftMs) / 1e3
	if leftMs < 0 {
		leftS = endlessMs / 1000 // the library regards a negative wait as an admission
	}
	r.redisRateDenied(leftS, leftS)
}
