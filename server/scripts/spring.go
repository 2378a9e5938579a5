package scripts

import "github.com/weir-project/weir/engine"

// springGateway sends the rate per second, the capacity, its own time in seconds or nothing, and the requested tokens.
// The use of the sent time differs between releases.
func springGateway() *dialect {
	d := &dialect{name: "Spring Cloud Gateway", registry: "Maven",
		native: "RL.TOKENBUCKET key replenishRate burstCapacity COST requestedTokens"}
	for _, era := range []struct {
		sha1, releases, args string
		check                func(*engine.Script, [][]byte) error
	}{
		{"0ad5736ed1c04aae6ec194376c784b89b8c08a7a", "4.3.0 to 5.0.4", "pn-n", springMayTellTime},
		{"775635cca91092477cbcee85fd800accb6adc4b2", "4.0.1 to 4.2.7", "pn-n", springMayTellTime},
		{"76a566c51f92d8f643d16e0ef0101663d5380dba", "3.0.6 to 4.0.0", "pn-n", nil},
		{"9d491aea731237273f4274f9ed9660b432b23791", "2.2.3 to 3.0.5", "pnnn", springTellsTime},
		{"eec77786d43c65f7fd568900b5d2b63b692318dc", "2.0.0 to 2.2.2", "pnnn", springIsKept},
	} {
		d.scripts = append(d.scripts, &Script{
			ID: engine.SpringTake, Name: "request_rate_limiter", Keys: 2, Args: era.args, Check: era.check,
			Reply: replyPair,
			texts: []scriptText{{era.sha1, era.releases}},
		})
	}
	return d
}

// springTellsTime makes weir decide by the time that the client sends.
func springTellsTime(call *engine.Script, _ [][]byte) error {
	call.Args[4] = 1
	return nil
}

// springIsKept is springTellsTime for releases that fail for a short time to live.
func springIsKept(call *engine.Script, argv [][]byte) error {
	if err := bucketIsKept(call, argv); err != nil {
		return err
	}
	return springTellsTime(call, argv)
}

// springMayTellTime makes weir decide by the client's time if the client sends one.
func springMayTellTime(call *engine.Script, argv [][]byte) error {
	if now, err := number(2, argv[2]); err == nil {
		call.Args[2], call.Args[4] = now, 1
	}
	return nil
}
