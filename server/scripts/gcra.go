package scripts

import (
	"math"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/server/resp"
)

// redisGCRA sends its own time in milliseconds, burst, rate, period in milliseconds and cost.
func redisGCRA() *dialect {
	return &dialect{
		name: "redis-gcra", registry: "npm", native: "RL.TOKENBUCKET key rate/period burst COST n",
		scripts: []*Script{{
			ID: engine.RedisGCRA, Name: "performGcraRateLimit", Keys: 1, Args: "npppn", Check: gcraIsKept,
			Reply: replyRedisGCRA,
			texts: []scriptText{{"868f66d2db4929999a50c5ed5f57985f3cff7461", "0.3.0"}},
		}},
	}
}

// gcraIsKept rejects calls for which the script fails to store its state. The burst may span more milliseconds than
// doubles count exactly, or the cost may be too small to change the time.
func gcraIsKept(call *engine.Script, _ [][]byte) error {
	now, burst, rate, period, cost := call.Args[0], call.Args[1], call.Args[2], call.Args[3], call.Args[4]
	increment := float64(period / rate * cost)
	if engine.GCRABurstMs(burst, rate, period) > MaxNumber || increment > 0 && now+increment == now {
		return resp.Error("ERR invalid expire time in 'set' command")
	}
	return nil
}

// replyRedisGCRA writes: limited, remaining, milliseconds to wait, milliseconds until idle, and two intermediate
// numbers as text.
func replyRedisGCRA(w resp.Reply, words [4]int64) {
	diffMs, emissionMs := math.Float64frombits(uint64(words[0])), math.Float64frombits(uint64(words[1]))
	w.Array(6)
	w.Bool(emissionMs < 0)
	w.Int(words[2])
	w.Int(engine.Truncate(math.Ceil(max(-diffMs, 0))))
	w.Int(words[3])
	luaNumber(w, words[0])
	luaNumber(w, int64(math.Float64bits(math.Abs(emissionMs))))
}
