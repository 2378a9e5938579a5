package scripts

import (
	"bytes"
	"strconv"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limits"
	"github.com/weir-project/weir/server/resp"
)

// laravel sends a value and a time to live in seconds for add of its cache, and the owner of a lock for releaseLock.
// Its throttle sends its own time, with a fraction and without, the window in seconds and the limit. Its funnel sends
// the keys of its slots, their common name, seconds and an owner.
func laravel() *dialect {
	return &dialect{
		name: "Laravel", registry: "Packagist",
		native: "RL.FIXED key window max FIRST; RL.ACQUIRE key max ttl HOLDER owner",
		scripts: []*Script{
			{ID: engine.TextSet, Name: "add", Keys: 1, Args: "vw",
				Check: livesFor(engine.TextIfAbsent, 1, 1000), Reply: replyStatus,
				texts: []scriptText{{"a08c9c69b7c07ae2485190873b90d128a23e502d", "11.39.0 to 13.26.0"}}},
			{ID: engine.TextDrop, Name: "releaseLock", Keys: 1, Args: "v", Reply: ReplyOne,
				texts: []scriptText{{"647c65a442733a1aa440f99908d249d13b4d6c4a", "11.39.0 to 13.26.0"}}},
			{ID: engine.DurationTake, Name: "throttle", Keys: 1, Args: "nwww", Check: toldInText, Reply: replyDuration,
				texts: []scriptText{{"29cc07bd431ccbf64637e5dcb60484560fdfa2da", "6.0.0 to 13.26.0"}}},
			{ID: engine.DurationLook, Name: "tooManyAttempts", Keys: 1, Args: "nwww", Check: toldInText,
				Reply: replyDurationLook,
				texts: []scriptText{{"1c5d436d6863e949247f4fa66fa1e32b7fa18da9", "8.32.0 to 13.26.0"}}},
			{Name: "funnel", Keys: 1, Args: "vwv", Several: TakesFirst,
				texts: []scriptText{{"420ca604de4310d8301943a71390ee669720d640", "6.1.0 to 13.26.0"}}},
			release("release", scriptText{"a50243715157b186c5162c69e02eff3bf0c7994a", "6.1.0 to 13.26.0"}),
		},
	}
}

// toldInText prepares the times that the scripts compare as texts. With ten digits, until the year 2286, that is a
// comparison of numbers, but any fraction of a second is the same, also ".0".
func toldInText(call *engine.Script, argv [][]byte) error {
	const least, end = 1e9, 1e10
	now, _, isFraction := bytes.Cut(argv[0], []byte("."))
	for i, seconds := range [][]byte{now, argv[1]} {
		if n, ok := limits.Int(seconds); !ok || n < least || n >= end || len(seconds) != 10 {
			return limits.Bad(scriptArg(i), "must be a time in seconds since 1970, of ten digits", argv[i])
		}
	}
	if call.Args[1]+call.Args[2] >= end {
		return limits.Bad(scriptArg(2), "must be a window that ends before the year 2286", argv[2])
	}
	n, _ := limits.Int(now)
	call.Args[0] = float64(n) + toNumber(isFraction)/2
	return nil
}

// replyDuration writes whether the request is admitted, the end of the window, as a text if it began before, and what
// is left.
func replyDuration(w resp.Reply, words [4]int64) {
	w.Array(3)
	replyTrue(w, words)
	if words[3] == 0 {
		w.Int(words[1])
	} else {
		w.Bulk(strconv.FormatInt(words[1], 10))
	}
	w.Int(words[2])
}

// replyDurationLook writes the end of the window as a text and what is left, or 0 and the end of another window.
func replyDurationLook(w resp.Reply, words [4]int64) {
	if words[3] == 0 {
		replyPair(w, words)
		return
	}
	w.Array(2)
	w.Bulk(strconv.FormatInt(words[1], 10))
	w.Int(words[2])
}
