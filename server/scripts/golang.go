package scripts

import (
	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/server/resp"
)

// redisRate sends burst, rate, period in seconds and cost. Releases between v8 and v9.1.1 have other scripts.
func redisRate() *dialect {
	return &dialect{
		name: "go-redis/redis_rate", registry: "Go", native: "RL.TOKENBUCKET key rate/period burst COST n [PARTIAL]",
		scripts: []*Script{
			{ID: engine.RedisRateAllowN, Name: "allowN", Keys: 1, Args: "nppn", Reply: replyRedisRate,
				texts: []scriptText{{"f52a5b566060d79fd321d695df55bc918339c4aa", "9.1.1 to 10.0.1"}}},
			{ID: engine.RedisRateAllowAtMost, Name: "allowAtMost", Keys: 1, Args: "nppn", Reply: replyRedisRate,
				texts: []scriptText{{"054143318f521948424aa25df61d7f7ba835a9d7", "9.1.1 to 10.0.1"}}},
		},
	}
}

// uluLimiter sends count and window in milliseconds.
func uluLimiter() *dialect {
	return &dialect{
		name: "ulule/limiter", registry: "Go", native: "RL.FIXED key window max FIRST",
		scripts: []*Script{
			{ID: engine.UluleIncr, Name: "incr", Keys: 1, Args: "ii", Reply: replyPair,
				texts: []scriptText{{"f74233f556d3f99c50b61169cf8aa8d5deb63fb2", "3.7.0 to 3.11.2"}}},
			{ID: engine.UlulePeek, Name: "peek", Keys: 1, Reply: replyPair,
				texts: []scriptText{{"566f5c6a17e5fddb9a10bf389f754edd0d899c61", "3.7.0 to 3.11.2"}}},
		},
	}
}

// goZero sends limit and window in seconds for PeriodLimit. For TokenLimit it sends rate, burst, its own time in
// seconds and the requested tokens.
func goZero() *dialect {
	return &dialect{
		name: "go-zero", registry: "Go", native: "RL.FIXED key window max FIRST; RL.TOKENBUCKET key rate burst COST n",
		scripts: []*Script{
			{ID: engine.ZeroPeriod, Name: "PeriodLimit", Keys: 1, Args: "nw", Reply: ReplyOne,
				texts: []scriptText{{"a9e60ae5eb5b2afd1924613fe21400b92d3f8f07", "1.6.5 to 1.10.3"}}},
			{ID: engine.ZeroToken, Name: "TokenLimit", Keys: 2, Args: "pnnn", Check: bucketIsKept, Reply: replyTrue,
				texts: []scriptText{{"b7bb2fcc82b9c8fc49850e9223e78667a5387dbc", "1.6.5 to 1.10.3"}}},
		},
	}
}

// traefik sends the rate per microsecond, the burst, a time to live in seconds, and its own time and the longest wait
// in microseconds.
func traefik() *dialect {
	return &dialect{
		name: "Traefik rateLimit.redis", registry: "Go", native: "RL.TOKENBUCKET key rate burst",
		scripts: []*Script{{ID: engine.TraefikTake, Name: "AllowTokenBucket", Keys: 1, Args: "pnwnn",
			Reply: replyTraefik,
			texts: []scriptText{
				{"7d2a5c0821964964e7f36858db0f3c4a49951c4d", "3.7.15"},
				{"3d93177e9b9a18f241edddc8d7e7fa1c47ae4eb6", "3.6.22; 3.7.6 to 3.7.13"},
				{"a82138cfb0cc9aa6e05d666c1f912744aefbe711", "3.4.0 to 3.6.21; 3.7.5"},
			}}},
	}
}

// replyTraefik writes whether the script ran, the wait in microseconds and the tokens left, all as text.
func replyTraefik(w resp.Reply, words [4]int64) {
	w.Array(3)
	w.Bulk("true")
	luaNumber(w, words[0])
	luaNumber(w, words[1])
}

// bucketIsKept rejects a bucket whose time to live rounds to less than a second, for which the script fails.
func bucketIsKept(call *engine.Script, _ [][]byte) error {
	if engine.BucketTTLSeconds(call.Args[0], call.Args[1]) < 1 {
		return resp.Error("ERR invalid expire time in 'setex' command")
	}
	return nil
}
