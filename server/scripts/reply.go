package scripts

import (
	"math"
	"strconv"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/server/resp"
)

// Replies of scripts, as Redis converts them from Lua.

// replyStatus writes the status of SET: OK, or null if nothing was set.
func replyStatus(w resp.Reply, words [4]int64) {
	if words[3] == 0 {
		w.Null()
		return
	}
	w.OK()
}

func replyWasSet(w resp.Reply, words [4]int64) { w.Int(words[3]) }

func replyNothing(w resp.Reply, _ [4]int64) { w.Null() }

func ReplyOne(w resp.Reply, words [4]int64) { w.Int(words[0]) }

func replyPair(w resp.Reply, words [4]int64)  { replyInts(w, words[:2]) }
func replyThree(w resp.Reply, words [4]int64) { replyInts(w, words[:3]) }
func replyFour(w resp.Reply, words [4]int64)  { replyInts(w, words[:]) }

func replyInts(w resp.Reply, words []int64) {
	w.Array(len(words))
	for _, n := range words {
		w.Int(n)
	}
}

// replyTrue writes a Lua boolean: 1, or null for false.
func replyTrue(w resp.Reply, words [4]int64) {
	if words[0] == 0 {
		w.Null()
		return
	}
	w.Int(1)
}

// replyPairTrue writes a pair followed by a boolean.
func replyPairTrue(w resp.Reply, words [4]int64) {
	w.Array(3)
	w.Int(words[0])
	w.Int(words[1])
	replyTrue(w, [4]int64{words[2]})
}

// ReplyGet writes the reply of GET: the text of a number, or null if the PTTL says that the key does not exist.
func ReplyGet(w resp.Reply, words [4]int64) {
	if words[1] == -2 {
		w.Null()
		return
	}
	w.Bulk(strconv.FormatInt(words[0], 10))
}

// replyGetPTTL writes a pair of GET and PTTL.
func replyGetPTTL(w resp.Reply, words [4]int64) {
	w.Array(2)
	ReplyGet(w, words)
	w.Int(words[1])
}

// replyWindow writes the oldest time of a window and the number of hits, or null for an empty window.
func replyWindow(w resp.Reply, words [4]int64) {
	if words[0] == 0 {
		w.Null()
		return
	}
	w.Array(2)
	luaNumber(w, words[1])
	w.Int(words[0])
}

// replyWholeWindow writes the time in word i without its fraction and the number of hits, or an empty list.
func replyWholeWindow(i int) func(resp.Reply, [4]int64) {
	return func(w resp.Reply, words [4]int64) {
		if words[0] == 0 {
			w.Array(0)
			return
		}
		replyPair(w, [4]int64{engine.Truncate(math.Float64frombits(uint64(words[i]))), words[0]})
	}
}

// replyGetPTTLTwice writes two pairs of GET and PTTL as one list.
func replyGetPTTLTwice(w resp.Reply, words [4]int64) {
	w.Array(4)
	for i := 0; i < len(words); i += 2 {
		ReplyGet(w, [4]int64{words[i], words[i+1]})
		w.Int(words[i+1])
	}
}

func replyRedisRate(w resp.Reply, words [4]int64) {
	w.Array(4)
	w.Int(words[0])
	w.Int(words[1])
	luaNumber(w, words[2])
	luaNumber(w, words[3])
}
