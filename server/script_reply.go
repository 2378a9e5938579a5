package server

import "strconv"

// What scripts answer, as Redis converts it from Lua.

// replyStatus is the status of SET: OK, or nothing where it was not set.
func replyStatus(w *replyWriter, words [4]int64) {
	if words[3] == 0 {
		w.null()
		return
	}
	w.ok()
}

func replyWasSet(w *replyWriter, words [4]int64) { w.int(words[3]) }

func replyOne(w *replyWriter, words [4]int64) { w.int(words[0]) }

func replyPair(w *replyWriter, words [4]int64) {
	w.array(2)
	w.int(words[0])
	w.int(words[1])
}

func replyThree(w *replyWriter, words [4]int64) {
	w.array(3)
	for _, n := range words[:3] {
		w.int(n)
	}
}

// replyTrue is a Lua boolean: 1, or nothing for false.
func replyTrue(w *replyWriter, words [4]int64) {
	if words[0] == 0 {
		w.null()
		return
	}
	w.int(1)
}

// replyPairTrue is a pair with a boolean behind it.
func replyPairTrue(w *replyWriter, words [4]int64) {
	w.array(3)
	w.int(words[0])
	w.int(words[1])
	replyTrue(w, [4]int64{words[2]})
}

// replyGet is what GET answers: the text of a number, or nothing where there is no key,
// which its PTTL tells.
func replyGet(w *replyWriter, words [4]int64) {
	if words[1] == -2 {
		w.null()
		return
	}
	w.bulk(strconv.FormatInt(words[0], 10))
}

// replyGetPTTL is a pair of GET and PTTL.
func replyGetPTTL(w *replyWriter, words [4]int64) {
	w.array(2)
	replyGet(w, words)
	w.int(words[1])
}

func replyFour(w *replyWriter, words [4]int64) {
	w.array(4)
	for _, n := range words {
		w.int(n)
	}
}

// replyGetPTTLTwice is two pairs of GET and PTTL in one list.
func replyGetPTTLTwice(w *replyWriter, words [4]int64) {
	w.array(4)
	for i := 0; i < len(words); i += 2 {
		replyGet(w, [4]int64{words[i], words[i+1]})
		w.int(words[i+1])
	}
}

func replyRedisRate(w *replyWriter, words [4]int64) {
	w.array(4)
	w.int(words[0])
	w.int(words[1])
	luaNumber(w, words[2])
	luaNumber(w, words[3])
}
