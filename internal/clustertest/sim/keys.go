package sim

import (
	"fmt"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/clustertest/ledger"
)

// The first letter of a key selects the kind of its limiter, and therefore the check that judges it.
const (
	refilling = 'b' // a token bucket that refills
	sliding   = 's' // an exact sliding log
	counted   = 'n' // a bucket that never refills
	tight     = 't' // a bucket that is soon empty
	once      = 'i' // a bucket whose takes carry IDs and are repeated
	returned  = 'r' // a bucket with refunds by ID
	cleared   = 'z' // a key of one client, which resets it
)

const (
	refillPerSecond, refillBurst = 20, 10
	slidingMax                   = 12
	slidingWindow                = time.Second
	plenty                       = 1 << 20 // more than any run takes
	tightMax                     = 60
)

// newLimits returns the traffic on the limits of a run: some limits of each kind, and more in a cluster with several
// groups.
func newLimits(groups int) map[byte][]*ledger.Ring {
	limits, more := map[byte][]*ledger.Ring{}, max(1, min(groups, mostGroupsWithKeys))
	for kind, n := range map[byte]int{refilling: 3 * more, sliding: 3 * more, counted: 3 * more, tight: 3 * more,
		once: 2 * more, returned: 2 * more, cleared: clients} {
		for i := range n {
			name := fmt.Sprintf("%c%d", kind, i)
			traffic := ledger.Counters(name, limitOf(name).Max)
			if kind == refilling || kind == sliding {
				traffic = ledger.Refilling(name)
			}
			limits[kind] = append(limits[kind], &ledger.Ring{Traffic: traffic})
		}
	}
	return limits
}

// limitOf is the limit of every operation on a key.
func limitOf(key string) engine.Limit {
	never := engine.Rate{Units: 1, PerNs: engine.MaxWindowNs}
	switch key[0] {
	case refilling:
		return engine.Limit{Algorithm: engine.TokenBucket,
			Rate: engine.Rate{Units: 1, PerNs: int64(time.Second) / refillPerSecond}, Max: refillBurst}
	case sliding:
		return engine.Limit{Algorithm: engine.SlidingLog, Max: slidingMax, WindowNs: int64(slidingWindow)}
	case tight:
		return engine.Limit{Algorithm: engine.TokenBucket, Rate: never, Max: tightMax}
	}
	return engine.Limit{Algorithm: engine.TokenBucket, Rate: never, Max: plenty}
}
