package scripts

import (
	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/quote"
	"github.com/weir-project/weir/server/resp"
)

// Libraries that decide in the client and store bytes with compare-and-swap.

// bucket4j sends the bytes that it read, the computed bytes and a time to live in milliseconds.
func bucket4j() *dialect {
	return &dialect{
		name: "Bucket4j", registry: "Maven", native: "RL.TOKENBUCKET key rate burst COST n",
		scripts: []*Script{
			{ID: engine.TextSwap, Name: "compareAndSwap", Keys: 1, Args: "vv", Reply: ReplyOne,
				texts: []scriptText{{"9450de540565d89de15092a716555821601f128b", "7.0.0 to 8.19.0"}}},
			{ID: engine.TextSwap, Name: "compareAndSwapPX", Keys: 1, Args: "vvw", Check: livesFor(0, 2, 1),
				Reply: ReplyOne,
				texts: []scriptText{{"535b2fd00a12a23393fe15cf99599ecc51cd3007", "7.0.0 to 8.19.0"}}},
			{ID: engine.TextAdd, Name: "setIfAbsent", Keys: 1, Args: "v", Check: ifAbsent, Reply: replyWasSet,
				texts: []scriptText{{"1fed031c105d7c0315b3fc2e4a75e697247264f5", "8.2.0 to 8.19.0"}}},
			{ID: engine.TextAdd, Name: "setIfAbsentPX", Keys: 1, Args: "vw",
				Check: livesFor(engine.TextIfAbsent, 1, 1), Reply: replyWasSet,
				texts: []scriptText{{"c0569386b0382069581dfaa1a8d241140bc0eeb4", "8.2.0 to 8.19.0"}}},
			{ID: engine.TextSet, Name: "setIfAbsent", Keys: 1, Args: "v", Check: ifAbsent, Reply: replyStatus,
				texts: []scriptText{{"6cad3abd039c32c68cc4638ca3513684cd302a58", "7.0.0 to 8.1.1"}}},
			{ID: engine.TextSet, Name: "setIfAbsentPX", Keys: 1, Args: "vw",
				Check: livesFor(engine.TextIfAbsent, 1, 1), Reply: replyStatus,
				texts: []scriptText{{"70b34c1df15244e38adcc5356cabe59b8aca7254", "7.0.0 to 8.1.1"}}},
		},
	}
}

// throttled sends the number that it read, the computed number and a time to live in seconds.
func throttled() *dialect {
	return &dialect{
		name: "throttled/throttled", registry: "Go", native: "RL.TOKENBUCKET key rate burst COST n",
		scripts: []*Script{{
			ID: engine.TextSwapLive, Name: "compareAndSwap", Keys: 1, Args: "vvw", Check: livesFor(0, 2, 1000),
			Reply: ReplyOne, Refusal: noValue,
			texts: []scriptText{{"ebd682e30de074a6919bde872b507734c7c3ebe5", "2.2.0 to 2.15.0"}},
		}},
	}
}

func ifAbsent(call *engine.Script, _ [][]byte) error {
	call.Args[0] = engine.TextIfAbsent
	return nil
}

// livesFor makes argument i, a whole number of units, the time to live of the stored value.
func livesFor(how int64, i int, unitMs float64) func(*engine.Script, [][]byte) error {
	return func(call *engine.Script, argv [][]byte) error {
		ms := float64(call.Args[i] * unitMs)
		if ms > MaxNumber {
			return resp.Error("ERR invalid expire time in script: " + scriptArg(i) + " must be within 285,000 years, " +
				"not " + quote.Text(argv[i]))
		}
		call.Args[i] = 0
		call.Args[0], call.Args[1] = float64(how|engine.TextExpireMs), ms
		return nil
	}
}

// noValue returns the error of the script if no value is stored.
func noValue(words [4]int64) error {
	if words[1] == 0 {
		return resp.Error("key does not exist")
	}
	return nil
}
