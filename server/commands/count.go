package commands

import (
	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/server/arg"
	"github.com/weir-project/weir/server/scripts"
	"github.com/weir-project/weir/server/service"
)

// Limiter libraries send these commands beside their scripts, on the counts that the scripts keep. Commands on strings
// are in string.go.

const expireReply = "1, or 0 when there is no such key or the condition is not met."

var (
	paramIfLifetime = param{"NX, XX", "only where there is no time to live, or one"}
	paramIfLater    = param{"GT, LT", "only if it then ends later, or sooner"}
)

func countCommands() []*command {
	expire := func(name, syntax, summary, word string) *command {
		return &command{name: name, arity: -3, syntax: "key " + syntax + " [NX|XX] [GT|LT]", summary: summary,
			params: []param{paramString, paramIfLifetime, paramIfLater},
			reply:  expireReply, plan: planExpire(lower([]byte(name)), word)}
	}
	return onCounts([]*command{
		{name: "GET", arity: 2, syntax: "key", summary: "The string or count that a limiter library keeps under a key",
			params: []param{paramString},
			reply: "The bytes or the number, or nothing. Of a name that the `LAYOUT` of a policy makes: one line " +
				"that says what is left.", plan: planGet, answer: answerGet,
			shown: []example{{"GET rl:42", "nil", ""}, {"INCR rl:42", "1", ""}, {"GET rl:42", "1", ""}}},
		{name: "INCR", arity: 2, syntax: "key", summary: "Add 1 to a count", reply: "The count.",
			plan: planAdd(1, false)},
		{name: "INCRBY", arity: 3, syntax: "key n", summary: "Add to a count", reply: "The count.",
			plan: planAdd(1, true)},
		{name: "DECR", arity: 2, syntax: "key", summary: "Take 1 from a count", reply: "The count.",
			plan: planAdd(-1, false)},
		{name: "DECRBY", arity: 3, syntax: "key n", summary: "Take from a count", reply: "The count.",
			plan: planAdd(-1, true)},
		expire("EXPIRE", "seconds", "Give a string or a count a time to live", "EX"),
		expire("PEXPIRE", "ms", "Give a string or a count a time to live", "PX"),
		expire("EXPIREAT", "time", "Let a string or a count end at a Unix time in seconds", "EXAT"),
		expire("PEXPIREAT", "time", "Let a string or a count end at a Unix time in milliseconds", "PXAT"),
		{name: "PERSIST", arity: 2, syntax: "key", summary: "Remove the time to live of a string or a count",
			params: []param{paramString},
			reply:  "1, or 0 when there is no such key or it has none.", plan: planPersist},
	})
}

// onCounts completes the rows of commands on counts and strings.
func onCounts(commands []*command) []*command {
	for _, cmd := range commands {
		cmd.group, cmd.flags = groupDialect, decideFlags
		if cmd.keys == (keySpec{}) {
			cmd.keys = oneKey
		}
		if cmd.answer == nil {
			cmd.answer = answerCount
		}
	}
	return commands
}

// onCount begins an operation on a count.
func onCount(s *Session, key []byte, id engine.ScriptID) (*engine.Script, error) {
	op, err := s.op(engine.OpScript, key)
	if err != nil {
		return nil, err
	}
	op.Script = s.batch.NextScript()
	op.Script.ID = id
	return op.Script, nil
}

func planGet(s *Session, args [][]byte) error {
	_, err := onText(s, args[1], engine.CountGet)
	lookUnderPolicy(s, args[1])
	return err
}

func answerGet(s *Session, ops []engine.Op, ds []engine.Decision) {
	if text, ok := policyText(s.srv, ops, ds); ok {
		s.Bulk(text)
		return
	}
	writeValue(s, &ds[0])
}

func answerCount(s *Session, _ []engine.Op, ds []engine.Decision) {
	scripts.ReplyOne(s.Reply, ds[0].ScriptAnswer())
}

// planCountSet plans SET of a whole number without options or with EX or PX. It uses the operation CountSet, which
// nodes of every version of weir know. It returns nil for any other SET.
func planCountSet(s *Session, args [][]byte) (call *engine.Script, err error) {
	n, ok := redisInt(args[2])
	if !ok || n < -engine.MaxUnits || n > engine.MaxUnits || len(args) != 3 && len(args) != 5 {
		return nil, nil
	}
	ms := int64(0)
	if len(args) == 5 {
		w := findWord(lifetimeWords[:2], args[3]) // EX, PX
		if w == nil {
			return nil, nil
		}
		if ms, err = readLifetime(s.srv, "set", w.word, args[4]); err != nil {
			return nil, err
		}
	}
	if call, err = onCount(s, args[1], engine.CountSet); err == nil {
		call.Args[0], call.Args[1] = float64(n), float64(ms)
	}
	return call, err
}

// isCountSet reports whether an operation is SET of a whole number. It is admitted unless the key is blocked. It has no
// status for a blocked key, because nodes of every version of weir must decide alike.
func isCountSet(op *engine.Op) bool {
	return op.Code == engine.OpScript && op.Script.ID == engine.CountSet
}

func planAdd(sign int64, given bool) func(*Session, [][]byte) error {
	return func(s *Session, args [][]byte) error {
		call, err := onCount(s, args[1], engine.CountAdd)
		if err != nil {
			return err
		}
		n := int64(1)
		if given {
			n, err = stepArg(args[2])
		}
		call.Args[0] = float64(sign * n)
		return err
	}
}

// stepArg reads the number that a command adds to a count.
func stepArg(b []byte) (int64, error) {
	n, ok := redisInt(b)
	switch {
	case !ok:
		return 0, arg.NotInteger("n", "must be a whole number", b)
	case n < -engine.MaxUnits || n > engine.MaxUnits:
		return 0, service.ErrOverflow
	}
	return n, nil
}

// planExpire returns the plan of a command that sets a time to live, with conditions. word is the option of SET with
// the same unit: EX, PX, EXAT or PXAT. Without a condition the plan uses the operation CountExpire, which nodes of
// every version of weir know.
func planExpire(name, word string) func(*Session, [][]byte) error {
	return func(s *Session, args [][]byte) error {
		how, err := expireConditions(args[3:])
		if err != nil {
			return err
		}
		n, ok := redisInt(args[2])
		if !ok {
			return arg.NotInteger("time", "must be a whole number", args[2])
		}
		ms, err := fromNow(s.srv, name, word, n, args[2])
		if err != nil {
			return err
		}
		if how == 0 {
			call, err := onCount(s, args[1], engine.CountExpire)
			if err == nil {
				call.Args[0] = float64(ms)
			}
			return err
		}
		return planTextExpire(s, args[1], how, ms)
	}
}

func planTextExpire(s *Session, key []byte, how, ms int64) error {
	call, err := onText(s, key, engine.TextExpire)
	if err == nil {
		call.Args[0], call.Args[1] = float64(ms), float64(how)
	}
	return err
}

func planPersist(s *Session, args [][]byte) error {
	return planTextExpire(s, args[1], engine.TextPersist, 0)
}
