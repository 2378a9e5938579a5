package scripts

import (
	"math"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limits"
)

// Token buckets that applications define themselves, as two of the systems of examples/systems/requirements.md do. Each
// script is known in any white space.

// anySpace says in the list of scripts that a script is recognised by its form.
const anySpace = "in any white space, with or without comments"

// gatewayBucket sends the rate per second, the burst, its own time in milliseconds and a time to live in seconds.
func gatewayBucket() *dialect {
	return &dialect{
		name: "the gateway of examples/systems", registry: "Spring, Kotlin", native: "RL.TOKENBUCKET key rate burst",
		scripts: []*Script{{ID: engine.GatewayTake, Name: "token-bucket.lua", Keys: 1, Args: "nnni", Reply: replyThree,
			texts: []scriptText{{"a27501a87b1775642eb421bbfb630f1ed357f5ae", anySpace}},
			form:  "0b6809d9c3999b9aaf66c8018adc951bb5918d0c"}},
	}
}

// marketBucket sends the burst, the rate per second, its own time in milliseconds and the number of tokens.
func marketBucket() *dialect {
	return &dialect{
		name: "the marketplace of examples/systems", registry: "Spring, Java",
		native: "RL.TOKENBUCKET key rate burst COST n",
		scripts: []*Script{{
			ID: engine.MarketTake, Name: "token-bucket", Keys: 1, Args: "nnnn", Check: marketIsKept, Reply: replyThree,
			texts: []scriptText{{"6c467d43a574bf5fbdeb4d532c986b314eff358f", anySpace}},
			form:  "e3ff6a8dcef1675d8e7e29002eac2a7efac3979e",
		}},
	}
}

// mostExpireSeconds is the longest time to live that Redis' EXPIRE accepts, in seconds.
const mostExpireSeconds = math.MaxInt64/1000 - 1<<33 // minus the time since 1970

// marketIsKept rejects a bucket whose time to live Redis would refuse.
func marketIsKept(call *engine.Script, argv [][]byte) error {
	if ttl := engine.MarketTTLSeconds(call.Args[0], call.Args[1]); !(math.Abs(ttl) < mostExpireSeconds) {
		return limits.Bad(scriptArg(1), "must be a rate at which the bucket is full within 292 million years", argv[1])
	}
	return nil
}
