package scripts

import "github.com/weir-project/weir/engine"

// rateLimiterFlexible sends points, the duration in seconds, and two unused arguments.
func rateLimiterFlexible() *dialect {
	return &dialect{
		name: "rate-limiter-flexible", registry: "npm", native: "RL.FIXED key window max FIRST COST n",
		scripts: []*Script{{ID: engine.FlexibleConsume, Name: "rlflxIncr", Keys: 1, Args: "iw--", Reply: replyPair,
			texts: []scriptText{{"a1de965f42e177aa339706bd580f049065eca79a", "2.0.0 to 11.4.0"}}}},
	}
}

// rateLimitRedis is the store of express-rate-limit. It sends the window in milliseconds. Until 5.0 a flag precedes it,
// which says whether each hit restarts the window.
func rateLimitRedis() *dialect {
	return &dialect{
		name: "rate-limit-redis (express-rate-limit)", registry: "npm", native: "RL.FIXED key window max FIRST",
		scripts: []*Script{
			{ID: engine.ExpressHit, Name: "increment", Keys: 1, Args: "w", Reply: replyPair,
				texts: []scriptText{{"895b92e1712734e1b464999be23953485475357b", "6.0.1"}}},
			{ID: engine.ExpressHitReset, Name: "increment", Keys: 1, Args: "1w", Reply: replyPair,
				texts: []scriptText{{"81dbecea94d2d10514719b20ed51faf711529d9d", "4.2.3 to 5.0.0"}}},
			{ID: engine.ExpressCount, Name: "increment", Keys: 1, Args: "1w", Reply: replyPair,
				texts: []scriptText{{"b829ec02dca78a148dfc75dd3c86f488ed007c68", "4.2.1 to 4.2.2"}}},
			{ID: engine.ExpressCountZero, Name: "increment", Keys: 1, Args: "1w", Reply: replyPair,
				texts: []scriptText{{"3f424a504987d231baa2e19159bb5def8ad32f87",
					"4.1.0 to 4.2.0; @hono-rate-limiter/redis 0.1.4"}}},
			{ID: engine.CountGet, Name: "get", Keys: 1, Reply: replyGetPTTL,
				texts: []scriptText{{"6aeb97ed6086dcdeafdc6fda3999a0d0e38ec96a",
					"4.1.0 to 6.0.1; @hono-rate-limiter/redis 0.1.4"}}},
		},
	}
}

// fastifyRateLimit sends the window in milliseconds, the maximum and whether to continue when exceeding. Since 10.2 it
// also sends whether to back off. Before 10 it sends the number of denials after which to ban.
func fastifyRateLimit() *dialect {
	return &dialect{
		name: "@fastify/rate-limit", registry: "npm", native: "RL.FIXED key window max FIRST",
		scripts: []*Script{
			{ID: engine.FastifyHit, Name: "rateLimit", Keys: 1, Args: "wntt", Reply: replyPair,
				texts: []scriptText{{"b8a19d47785922bb04e7a9fdb49e90d89be1b8af", "10.3.0 to 11.2.0"}}},
			{ID: engine.FastifyHitTTL, Name: "rateLimit", Keys: 1, Args: "wntt", Reply: replyPair,
				texts: []scriptText{{"b72d57bf75a045b8d6f72ca5b553e356583723f0", "10.2"}}},
			{ID: engine.FastifyHitTTL, Name: "rateLimit", Keys: 1, Args: "wnt", Reply: replyPair,
				texts: []scriptText{{"f80d0c65a05e27559602a2b43fbe989df31fc5f6", "10.0 to 10.1"}}},
			{ID: engine.FastifyHitBan, Name: "rateLimit", Keys: 1, Args: "wnnt", Reply: replyPairTrue,
				texts: []scriptText{{"3f481dd9e75a7c63c2facb091af19e1ab17f2cc7", "8.1 to 9.1"}}},
			{ID: engine.FastifyRead, Name: "rateLimitRead", Keys: 1, Reply: replyPair,
				texts: []scriptText{{"4c7d9ef62b3d4f8efd8d11d5d2fd1a56b1e723bc", "11.1 to 11.2.0"}}},
		},
	}
}

// asyncRatelimiter, which koa-ratelimit uses, sends its own time and the window in milliseconds, and the limit. Since
// 1.6.0 it also sends whether it only looks.
func asyncRatelimiter() *dialect {
	return &dialect{
		name: "async-ratelimiter (koa-ratelimit)", registry: "npm", native: "RL.SLIDING key window max",
		scripts: []*Script{
			{ID: engine.AsyncTake, Name: "ratelimiter", Keys: 1, Args: "pwh1", Reply: replyThree,
				texts: []scriptText{{"ad00ff6f099013f2aea94ed48c220cbf616c6a07", "1.6.0 to 1.6.10"}}},
			{ID: engine.AsyncTake, Name: "ratelimiter", Keys: 1, Args: "pwh", Reply: replyThree,
				texts: []scriptText{{"51d8e63a380bf7a715e9cc96b2fa6ad9e2e8788b", "1.5.1 to 1.5.2"}}},
		},
	}
}
