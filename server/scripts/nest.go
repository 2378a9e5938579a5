package scripts

import "github.com/weir-project/weir/engine"

// nestThrottler sends a name, the window in milliseconds, the limit and the block duration. Before 0.5 it sends the
// window alone, and no hit restarts it.
func nestThrottler() *dialect {
	return &dialect{
		name: "@nest-lab/throttler-storage-redis, nestjs-throttler-storage-redis (NestJS)", registry: "npm",
		native: "RL.FIXED key window max FIRST; RL.STRIKE key window threshold penalty",
		scripts: []*Script{{
			ID: engine.NestHit, Name: "increment", Keys: 2, Args: "-wnw", Reply: replyFour,
			texts: []scriptText{{"f1e0da9c495676ab6904eb80db1f2811d5347f58", "1.0.0 to 1.2.0; 0.5.0 to 0.5.1"}},
		}, {
			ID: engine.ExpressCountZero, Name: "increment", Keys: 1, Args: "w", Check: moved(1, 0), Reply: replyPair,
			texts: []scriptText{{"f7788d43191d9ad66c866e8c63f3c3e361391849",
				"nestjs-throttler-storage-redis 0.3.0 to 0.4.4"}},
		}},
	}
}
