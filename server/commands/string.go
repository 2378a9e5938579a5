package commands

import (
	"strconv"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/server/resp"
	"github.com/weir-project/weir/server/scripts"
)

// Strings: byte strings that limiter libraries keep, which only their client understands. A
// whole number is a string, too: it is kept as a count, for scripts and INCR.

var (
	paramValue    = param{"value", "bytes, at most --max-value-bytes"}
	paramLifetime = param{"EX, PX, EXAT, PXAT", "the time to live, or when it ends in Unix time"}
)

const oldValueReply = "The value before, or nothing."

func stringCommands() []*command {
	commands := []*command{
		{name: "SET", arity: -3, syntax: "key value [NX|XX] [GET] [EX seconds|PX ms|EXAT time|PXAT time|KEEPTTL]", summary: "Keep a string or a count",
			params: []param{paramString, paramValue, {"NX, XX", "only where there is none, or one"}, {"GET", "answer the value before"},
				paramLifetime, {"KEEPTTL", "leave the time to live; without any of them there is none"}},
			reply: "OK, or nothing where NX or XX kept it from being set. With GET the value before, or nothing.",
			shown: []example{{"SET bucket:42 abc NX PX 60000", "OK", ""}, {"SET bucket:42 def NX", "nil", ""}, {"GET bucket:42", "abc", ""}},
			plan:  planSet, answer: answerSet},
		{name: "SETEX", arity: 4, syntax: "key seconds value", summary: "Keep a string for a time", reply: "OK.",
			params: []param{paramString, {"seconds", "the time to live"}, paramValue}, plan: planSetFor("setex", "EX"), answer: answerOK},
		{name: "PSETEX", arity: 4, syntax: "key ms value", summary: "Keep a string for a time", reply: "OK.",
			params: []param{paramString, {"ms", "the time to live"}, paramValue}, plan: planSetFor("psetex", "PX"), answer: answerOK},
		{name: "SETNX", arity: 3, syntax: "key value", summary: "Keep a string where there is none", reply: "1, or 0 when there is one.",
			params: []param{paramString, paramValue}, plan: planSetNX, answer: answerWasSet},
		{name: "GETSET", arity: 3, syntax: "key value", summary: "Keep a string and answer the one before", reply: oldValueReply,
			params: []param{paramString, paramValue}, plan: planGetSet, answer: answerGet},
		{name: "GETDEL", arity: 2, syntax: "key", summary: "Answer a string and delete it", reply: oldValueReply,
			params: []param{paramString}, plan: planOnString(engine.TextTake), answer: answerGet},
		{name: "GETEX", arity: -2, syntax: "key [EX seconds|PX ms|EXAT time|PXAT time|PERSIST]", summary: "Answer a string and change its time to live",
			params: []param{paramString, paramLifetime, {"PERSIST", "take the time to live away"}}, reply: "The value, or nothing.",
			plan: planGetEx, answer: answerGet},
		{name: "MGET", arity: -2, syntax: "key [key ...]", summary: "The strings under some keys", params: []param{paramString},
			reply: "An array: for each key its value, or nothing where there is no string.", keys: keySpec{1, -1, 1}, plan: planMGet, answer: answerMGet, cost: "O(n) in the number of keys"},
		{name: "STRLEN", arity: 2, syntax: "key", summary: "The length of a string", reply: "Bytes, 0 where there is none.",
			params: []param{paramString}, plan: planGet, answer: answerLength},
		{name: "APPEND", arity: 3, syntax: "key value", summary: "Add to the end of a string", reply: "The length in bytes.",
			params: []param{paramString, paramValue}, plan: planAppend},
	}
	return onCounts(commands)
}

var paramString = param{"key", "a string, or a count that a recognised script keeps"}

// onText begins an operation on a string, with the bytes that it takes.
func (s *Session) onText(key []byte, id engine.ScriptID, values ...[]byte) (*engine.Script, error) {
	for _, value := range values {
		if err := s.srv.checkValue(value); err != nil {
			return nil, err
		}
	}
	call, err := s.onCount(key, id)
	if err == nil {
		copy(call.Values[:], values)
		s.batch.Values += s.srv.cfg.MaxValueBytes
	}
	return call, err
}

// checkValue refuses a byte string that is longer than clients may keep.
func (s *Shared) checkValue(value []byte) error {
	if len(value) > s.cfg.MaxValueBytes {
		return resp.Error("ERR a value must be at most " + strconv.Itoa(s.cfg.MaxValueBytes) + " bytes (--max-value-bytes), not " + strconv.Itoa(len(value)))
	}
	return nil
}

func planOnString(id engine.ScriptID) func(*Session, [][]byte) error {
	return func(s *Session, args [][]byte) error {
		_, err := s.onText(args[1], id)
		return err
	}
}

func planSet(s *Session, args [][]byte) error {
	if call, err := s.setCount(args); call != nil || err != nil {
		return err
	}
	how, ms, err := s.stringOptions("set", args[3:], setWords)
	if err != nil {
		return err
	}
	return s.planTextSet(args[1], args[2], how, ms)
}

func (s *Session) planTextSet(key, value []byte, how, ms int64) error {
	call, err := s.onText(key, engine.TextSet, value)
	if err == nil {
		call.Args[0], call.Args[1] = float64(how), float64(ms)
	}
	return err
}

func planSetFor(name, word string) func(*Session, [][]byte) error {
	return func(s *Session, args [][]byte) error {
		ms, err := s.lifetime(name, word, args[2])
		if err != nil {
			return err
		}
		return s.planTextSet(args[1], args[3], engine.TextExpireMs, ms)
	}
}

func planSetNX(s *Session, args [][]byte) error {
	return s.planTextSet(args[1], args[2], engine.TextIfAbsent, 0)
}

func planGetSet(s *Session, args [][]byte) error {
	return s.planTextSet(args[1], args[2], engine.TextGetOld, 0)
}

func planGetEx(s *Session, args [][]byte) error {
	how, ms, err := s.stringOptions("getex", args[2:], getExWords)
	if err != nil {
		return err
	}
	call, err := s.onText(args[1], engine.TextTouch)
	if err == nil {
		call.Args[0], call.Args[1] = float64(how), float64(ms)
	}
	return err
}

func planMGet(s *Session, args [][]byte) error {
	if most := maxBatchValues / s.srv.cfg.MaxValueBytes; len(args)-1 > most {
		return resp.Error("ERR MGET takes at most " + strconv.Itoa(most) + " keys where --max-value-bytes is " + strconv.Itoa(s.srv.cfg.MaxValueBytes))
	}
	for _, key := range args[1:] {
		if _, err := s.onText(key, engine.TextLook); err != nil {
			return err
		}
	}
	return nil
}

func planAppend(s *Session, args [][]byte) error {
	call, err := s.onText(args[1], engine.TextAppend, args[2])
	if err == nil {
		call.Args[0] = float64(s.srv.cfg.MaxValueBytes)
	}
	return err
}

// answerSet answers what was there before, or whether the value was set.
func answerSet(s *Session, ops []engine.Op, ds []engine.Decision) {
	words, call := ds[0].ScriptAnswer(), ops[0].Script
	switch {
	case call.ID == engine.TextSet && engine.Truncate(call.Args[0])&engine.TextGetOld != 0:
		s.value(&ds[0])
	case call.ID == engine.TextSet && words[3] == 0:
		s.Null()
	default:
		s.OK()
	}
}

func answerWasSet(s *Session, _ []engine.Op, ds []engine.Decision) { s.Int(ds[0].ScriptAnswer()[3]) }

func answerMGet(s *Session, _ []engine.Op, ds []engine.Decision) {
	s.Array(len(ds))
	for i := range ds {
		s.value(&ds[i])
	}
}

func answerLength(s *Session, _ []engine.Op, ds []engine.Decision) {
	switch words := ds[0].ScriptAnswer(); {
	case words[2] == 1:
		s.Int(int64(len(ds[0].Value)))
	case words[1] == -2:
		s.Int(0)
	default:
		s.Int(int64(len(strconv.FormatInt(words[0], 10))))
	}
}

// value writes what a script that answers a string found.
func (s *Session) value(d *engine.Decision) {
	if words := d.ScriptAnswer(); words[2] == 0 {
		scripts.ReplyGet(&s.Writer, words)
		return
	}
	s.Bulk(d.Value)
}
