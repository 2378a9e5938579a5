package server

import "strconv"

// What scripts answer, as Redis converts it from Lua.

// replyStatus is the status of SET: OK, or nothing where it was not set.
func replyStatus(s *session, words [4]int64) {
	if words[3] == 0 {
		s.null()
		return
	}
	s.ok()
}

func replyWasSet(s *session, words [4]int64) { s.int(words[3]) }

func replyOne(s *session, words [4]int64) { s.int(words[0]) }

func replyPair(s *session, words [4]int64) {
	s.array(2)
	s.int(words[0])
	s.int(words[1])
}

func replyThree(s *session, words [4]int64) {
	s.array(3)
	for _, w := range words[:3] {
		s.int(w)
	}
}

// replyTrue is a Lua boolean: 1, or nothing for false.
func replyTrue(s *session, words [4]int64) {
	if words[0] == 0 {
		s.null()
		return
	}
	s.int(1)
}

// replyPairTrue is a pair with a boolean behind it.
func replyPairTrue(s *session, words [4]int64) {
	s.array(3)
	s.int(words[0])
	s.int(words[1])
	replyTrue(s, [4]int64{words[2]})
}

// replyGet is what GET answers: the text of a number, or nothing where there is no key,
// which its PTTL tells.
func replyGet(s *session, words [4]int64) {
	if words[1] == -2 {
		s.null()
		return
	}
	s.bulk(strconv.FormatInt(words[0], 10))
}

// replyGetPTTL is a pair of GET and PTTL.
func replyGetPTTL(s *session, words [4]int64) {
	s.array(2)
	replyGet(s, words)
	s.int(words[1])
}

func replyFour(s *session, words [4]int64) {
	s.array(4)
	for _, w := range words {
		s.int(w)
	}
}

// replyGetPTTLTwice is two pairs of GET and PTTL in one list.
func replyGetPTTLTwice(s *session, words [4]int64) {
	s.array(4)
	for i := 0; i < len(words); i += 2 {
		replyGet(s, [4]int64{words[i], words[i+1]})
		s.int(words[i+1])
	}
}

func replyRedisRate(s *session, words [4]int64) {
	s.array(4)
	s.int(words[0])
	s.int(words[1])
	s.luaNumber(words[2])
	s.luaNumber(words[3])
}
