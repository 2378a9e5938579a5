package scripts

import (
	"bytes"
	"math"
	"strconv"
	"strings"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/server/resp"
)

// upstash sends the window in milliseconds and the count, and its own time in milliseconds but for fixed windows. From
// 2.0.8 on it also sends the limit, and the key of a limit that changes. Unless the program asks for such a limit, the
// key is empty, and missing from 2.1.0 on. 2.1.0 begins the texts with a line for Upstash's own server.
//
// The key of a cached fixed window would exist for ever, because the library compares a number with a string. weir lets
// it end like any other. Nobody can see the difference: its name has the number of the window.
func upstash() *dialect {
	const fixed, slide, bucket, left = "fixedWindow", "slidingWindow", "tokenBucket", " getRemaining"
	d := &dialect{name: "@upstash/ratelimit", registry: "npm", native: "RL.FIXED key window max; " +
		"RL.SLIDINGCOUNTER key window max; RL.TOKENBUCKET key rate burst COST n"}
	// add adds a script. texts alternate between releases and SHA-1.
	add := func(sc *Script, texts ...string) {
		sc.Windows = strings.HasPrefix(sc.Name, slide)
		sc.Static = sc.Keys == 3 || sc.Keys == 2 && !sc.Windows
		for i := 0; i < len(texts); i += 2 {
			sc.texts = append(sc.texts, scriptText{texts[i+1], texts[i]})
		}
		d.scripts = append(d.scripts, sc)
	}
	add(&Script{ID: engine.UluleIncr, Variant: 1, Name: fixed, Keys: 1, Args: "wi", Check: moved(1, 0),
		Reply: ReplyOne},
		"1.1.3 to 2.0.7", "b13943e359636db027ad280f1def143f02158c13",
		"cached, 1.1.3 to 2.0.8", "c26b12703dd137939b9a69a3a9b18e906a2d940f",
		"cached, 2.1.0 to 2.2.0", "1861a700bafe96c833a483af6b1c28a8897cfdb0")
	add(&Script{ID: engine.UluleIncr, Variant: 2, Name: fixed, Keys: 2, Args: "nwi", Check: moved(2, 1, 0),
		Says: sayLimit},
		"2.0.8", "472e55443b62f60d0991028456c57815a387066d",
		"2.1.0 to 2.2.0", "b2efc02798c8e9b471a10f9b1d5745db89923ff3")
	add(&Script{ID: engine.CountGet, Variant: 1, Name: fixed + left, Keys: 1, Args: "-", Reply: replyGetOrZero},
		"1.1.3 to 2.0.7", "8c4c341934502aee132643ffbe58ead3450e5208",
		"cached, 1.1.3 to 2.0.8", "8e8f222ccae68b595ee6e3f3bf2199629a62b91a",
		"cached, 2.1.0 to 2.2.0", "eb82f0e853d2fc9a236fa9bfbe704fda6ac2fc36")
	add(&Script{ID: engine.CountGet, Variant: 2, Name: fixed + left, Keys: 2, Args: "n", Says: sayLeft},
		"2.0.8", "40515c9dd0a08f8584f5f9b593935f6a87c1c1c3",
		"2.1.0 to 2.2.0", "823cb2a5a902d69681244f5e28e5ebb8f2a89edd")
	add(&Script{ID: engine.UpstashSlide, Name: slide, Keys: 2, Args: "niwi", Reply: ReplyOne},
		"1.1.3 to 2.0.6", "e1391e429b699c780eb0480350cd5b7280fd9213",
		"2.0.7", "9b7842963bd73721f1a3011650c23c0010848ee3")
	add(&Script{ID: engine.UpstashSlide, Variant: 1, Name: slide, Keys: 3, Args: "niwi", Reply: replyPair},
		"2.0.8", "977fb636fb5ceb7e98a96d1b3a1272ba018efdae",
		"2.1.0 to 2.2.0", "74740bb3d7792848093cdef586b6b6037c455fd6")
	add(&Script{ID: engine.UpstashSlideLook, Name: slide + left, Keys: 2, Args: "iw", Check: moved(2, 0, 1),
		Reply: ReplyOne},
		"1.1.3 to 2.0.7", "65a73ac5a05bf9712903bc304b77268980c1c417")
	add(&Script{ID: engine.UpstashSlideLook, Variant: 1, Name: slide + left, Keys: 3, Args: "niw", Says: sayLeft},
		"2.0.8", "ee3a3265fad822f83acad23f8a1e2f5c0b156b03",
		"2.1.0 to 2.2.0", "7ca36169e0fc9caedd81b4eef8e99854c157f9b5")
	// The variants of tokenBucket are the rules of engine.UpstashTake.
	add(&Script{ID: engine.UpstashTake, Name: bucket, Keys: 1, Args: "nwpnn", Reply: replyPair},
		"1.1.3 to 2.0.6", "5bece90aeef8189a8cfd28995b479529e270b3c6")
	add(&Script{ID: engine.UpstashTake, Variant: 1, Name: bucket, Keys: 1, Args: "nwpnn", Reply: replyPair},
		"2.0.7", "d1f857ebbdaeca90ccd2cd4eada61d7c8e5db1ca")
	add(&Script{ID: engine.UpstashTake, Variant: 2, Name: bucket, Keys: 2, Args: "nwpnn", Reply: replyThree},
		"2.0.8", "b35c5bc0b7fdae7dd0573d4529911cabaf9d1d89",
		"2.1.0", "a9873a8026b509e99a49a0e5a2049756c693c384")
	add(&Script{ID: engine.UpstashTake, Variant: 3, Name: bucket, Keys: 2, Args: "nwpnn", Reply: replyThree},
		"2.2.0", "d60be5bd3d83482ae229309f1f7425424f891204")
	add(&Script{ID: engine.UpstashLook, Name: bucket + left, Keys: 1, Args: "n", Reply: replyPair},
		"2.0.0 to 2.0.7", "a15be2bb1db2a15f7c82db06146f9d08983900d0")
	add(&Script{ID: engine.UpstashLook, Variant: 1, Name: bucket + left, Keys: 2, Args: "n", Reply: replyThree},
		"2.0.8", "deb03663e8af5a968deee895dd081be553d2611b",
		"2.1.0 to 2.2.0", "40daf4a441df736f5c99f8b77bbe176c909e5de4")
	add(&Script{Name: "reset", Keys: 1, Args: "-", Several: DeletesLike, Reply: replyNothing},
		"1.1.3 to 2.2.0", "54bd274ddc59fb3be0f42deee2f64322a10e2b50")
	return d
}

// moved puts argument from[i] of a library's script into argument i of the operation.
func moved(from ...int) func(*engine.Script, [][]byte) error {
	return func(call *engine.Script, _ [][]byte) error {
		given := call.Args
		for i, j := range from {
			call.Args[i] = given[j]
		}
		return nil
	}
}

func replyGetOrZero(w resp.Reply, words [4]int64) {
	if words[1] == -2 {
		w.Int(0)
		return
	}
	ReplyGet(w, words)
}

// sayLimit writes the count and the limit.
func sayLimit(w resp.Reply, call *engine.Script, words [4]int64) {
	replyPair(w, [4]int64{words[0], engine.Truncate(call.Args[2])})
}

// sayLeft writes what is left of the limit, and the limit.
func sayLeft(w resp.Reply, call *engine.Script, words [4]int64) {
	limit := call.Args[0]
	replyPair(w, [4]int64{engine.Truncate(limit - float64(words[0])), engine.Truncate(limit)})
}

const (
	errMovingLimit = resp.Error("ERR weir knows no dynamicLimits of @upstash/ratelimit: the last key must be empty")
	errNoWindows   = resp.Error("ERR KEYS[1] and KEYS[2] must be one name with the numbers of the window of now and " +
		"of the window before it, like id:8 and id:7")
)

// Key returns the key of the limiter of a call. It is the first key, unless the script has a key for each window: then
// it is their common name and the length of the windows, so that one limiter has both counts.
func (sc *Script) Key(keys [][]byte, call *engine.Script) ([]byte, error) {
	if sc.Static && len(keys) == sc.Keys && len(keys[sc.Keys-1]) > 0 {
		return nil, errMovingLimit
	}
	if !sc.Windows {
		return keys[0], nil
	}
	nowMs, windowMs := call.Args[1], call.Args[2]
	number := engine.Truncate(math.Floor(nowMs / windowMs))
	name, current := bytes.CutSuffix(keys[0], strconv.AppendInt([]byte{':'}, number, 10))
	before, previous := bytes.CutSuffix(keys[1], strconv.AppendInt([]byte{':'}, number-1, 10))
	if !current || !previous || !bytes.Equal(name, before) {
		return nil, errNoWindows
	}
	return strconv.AppendInt(append(bytes.Clone(name), ":w"...), engine.Truncate(windowMs), 10), nil
}
