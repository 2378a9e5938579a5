package server

import (
	"math"

	"github.com/weir-project/weir/engine"
)

// What limiter libraries send beside their scripts, on the counts that these keep:
// whole numbers and nothing else.

var paramCounter = param{"key", "a count that a recognised script keeps, or that begins here"}

func countCommands() []*command {
	commands := []*command{
		{name: "GET", arity: 2, syntax: "key", summary: "The count that a limiter library keeps under a key",
			reply: "The number, or nothing.", plan: planGet, answer: answerGet,
			shown: []example{{"GET rl:42", "nil", ""}, {"INCR rl:42", "1", ""}, {"GET rl:42", "1", ""}}},
		{name: "SET", arity: -3, syntax: "key number [EX seconds|PX ms]", summary: "Set a count", reply: "OK.",
			params: []param{paramCounter, {"number", "a whole number"}, {"EX, PX", "the time to live; none: until it is deleted"}},
			plan:   planSet, answer: func(s *session, _ []engine.Op, _ []engine.Decision) { s.ok() }},
		{name: "INCR", arity: 2, syntax: "key", summary: "Add 1 to a count", reply: "The count.", plan: planAdd(1, false)},
		{name: "INCRBY", arity: 3, syntax: "key n", summary: "Add to a count", reply: "The count.", plan: planAdd(1, true)},
		{name: "DECR", arity: 2, syntax: "key", summary: "Take 1 from a count", reply: "The count.", plan: planAdd(-1, false)},
		{name: "DECRBY", arity: 3, syntax: "key n", summary: "Take from a count", reply: "The count.", plan: planAdd(-1, true)},
		{name: "EXPIRE", arity: 3, syntax: "key seconds", summary: "Give a count a time to live", reply: "1, or 0 when there is none.", plan: planExpire("seconds", 1000)},
		{name: "PEXPIRE", arity: 3, syntax: "key ms", summary: "Give a count a time to live", reply: "1, or 0 when there is none.", plan: planExpire("ms", 1)},
	}
	for _, cmd := range commands {
		cmd.group, cmd.flags, cmd.keys = groupDialect, decideFlags, oneKey
		if cmd.answer == nil {
			cmd.answer = answerCount
		}
	}
	return commands
}

// onCount begins an operation on a count.
func (s *session) onCount(key []byte, id engine.ScriptID) (*engine.Script, error) {
	op, err := s.op(engine.OpScript, key)
	if err != nil {
		return nil, err
	}
	op.Script = s.batch.nextScript()
	op.Script.ID = id
	return op.Script, nil
}

func planGet(s *session, args [][]byte) error {
	_, err := s.onCount(args[1], engine.CountGet)
	return err
}

func answerGet(s *session, _ []engine.Op, ds []engine.Decision) { replyGet(s, ds[0].ScriptAnswer()) }

func answerCount(s *session, _ []engine.Op, ds []engine.Decision) {
	replyOne(s, ds[0].ScriptAnswer())
}

func planSet(s *session, args [][]byte) error {
	call, err := s.onCount(args[1], engine.CountSet)
	if err != nil {
		return err
	}
	n, err := unitsArg("number", args[2], -engine.MaxUnits, engine.MaxUnits)
	if err != nil {
		return err
	}
	call.Args[0] = float64(n)
	switch {
	case len(args) == 3:
		return nil
	case len(args) == 5 && isWord(args[3], "EX"):
		call.Args[1], err = lifetimeMs("EX", args[4], 1, 1000)
	case len(args) == 5 && isWord(args[3], "PX"):
		call.Args[1], err = lifetimeMs("PX", args[4], 1, 1)
	default:
		err = replyError("ERR SET takes key, a whole number and EX seconds or PX ms: weir keeps limiters, not data")
	}
	return err
}

// lifetimeMs reads a time to live in units of so many milliseconds.
func lifetimeMs(name string, b []byte, least, unitMs int64) (float64, error) {
	n, err := unitsArg(name, b, least, maxScriptNumber/unitMs)
	return float64(n * unitMs), err
}

func planAdd(sign int64, given bool) func(*session, [][]byte) error {
	return func(s *session, args [][]byte) error {
		call, err := s.onCount(args[1], engine.CountAdd)
		if err != nil {
			return err
		}
		n := int64(1)
		if given {
			n, err = unitsArg("n", args[2], -engine.MaxUnits, engine.MaxUnits)
		}
		call.Args[0] = float64(sign * n)
		return err
	}
}

func planExpire(name string, unitMs int64) func(*session, [][]byte) error {
	return func(s *session, args [][]byte) error {
		call, err := s.onCount(args[1], engine.CountExpire)
		if err != nil {
			return err
		}
		call.Args[0], err = lifetimeMs(name, args[2], math.MinInt32, unitMs)
		return err
	}
}
