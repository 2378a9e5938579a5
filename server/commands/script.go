package commands

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"slices"
	"strconv"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/limits"
	"github.com/weir-project/weir/server/arg"
	"github.com/weir-project/weir/server/resp"
	"github.com/weir-project/weir/server/scripts"
	"github.com/weir-project/weir/server/service"
)

const (
	errNoScript   resp.Error = "NOSCRIPT No matching script. Please use EVAL."
	errFewKeys    resp.Error = "ERR Number of keys can't be greater than number of args"
	errNegKeys    resp.Error = "ERR Number of keys can't be negative"
	errNotBusy    resp.Error = "NOTBUSY No scripts in execution right now."
	scriptNatives            = "`weir dialects` lists what is recognised; RL.TOKENBUCKET, RL.FIXED, RL.SLIDING, " +
		"RL.SLIDINGCOUNTER and RL.ACQUIRE do natively what limiter scripts do"
)

func scriptCommands() []*command {
	params := []param{
		{"numkeys", "how many of the arguments are keys"}, {"key", "the first names the limiter, 1 to 512 bytes"},
		{"arg", "what the script takes, as its library sends it"},
	}
	commands := []*command{
		{
			name: "EVALSHA", arity: -3, syntax: "sha1 numkeys [key ...] [arg ...]",
			summary: "Run a recognised script of a limiter library, by its SHA-1",
			details: "weir recognises the scripts of published limiter libraries and runs them natively. " +
				"docs/scripts.md and `weir dialects` list them. " +
				"weir has no Lua.",
			params: params, reply: "The answer of the script. `NOSCRIPT` when it is not recognised.",
			flags: "write denyoom movablekeys noscript", plan: planEvalSHA, answer: answerScript, alone: runSeveral,
		},
		{
			name: "EVAL", arity: -3, syntax: "script numkeys [key ...] [arg ...]",
			summary: "Run a recognised script of a limiter library, by its text",
			details: "As EVALSHA, for libraries that send the text. Any other script is answered with an error.",
			params:  append([]param{{"script", "the text as the library sends it"}}, params...),
			reply:   "The answer of the script.", cost: "O(n) in the length of the text",
			flags: "write denyoom movablekeys noscript", plan: planEval, answer: answerScript, alone: runSeveral,
		},
		{
			name: "SCRIPT", arity: -2, summary: "Scripts of limiter libraries", flags: "noscript",
			subs: []*command{
				{name: "LOAD", arity: 3, syntax: "script", summary: "Recognise a script", flags: "noscript",
					run:   runScriptLoad,
					reply: "Its SHA-1, or an error when it is not recognised.", cost: "O(n) in the length of the text"},
				{name: "EXISTS", arity: -3, syntax: "sha1 [sha1 ...]", summary: "Check which scripts are recognised",
					flags: "noscript", run: runScriptExists,
					reply: "1 or 0 for each. Scripts that are recognised need not be loaded.",
					cost:  "O(n) in the number of scripts"},
				{name: "FLUSH", arity: -2, syntax: "[ASYNC|SYNC]", summary: "Forget loaded scripts", flags: "noscript",
					run: runScriptFlush, noEffect: "weir stores no scripts"},
				{name: "KILL", arity: 2, summary: "No effect: no script runs", flags: "noscript",
					run: func(s *Session, _ [][]byte) { s.fail(errNotBusy) }},
			},
		},
	}
	for _, cmd := range commands {
		cmd.group = groupDialect
	}
	return commands
}

func planEvalSHA(s *Session, args [][]byte) error {
	sc := scripts.Known.OfSum(args[1])
	if sc == nil {
		return unknownSum(args[1])
	}
	return planScript(s, sc, args[2:])
}

func planEval(s *Session, args [][]byte) error {
	if _, ok := deleteAllPattern(args[1]); ok {
		return errAlone
	}
	sc, err := recognise(args[1])
	if err != nil {
		return err
	}
	return planScript(s, sc, args[2:])
}

// recognise finds the script with a text, or returns an error that says what to do instead.
func recognise(text []byte) (*scripts.Script, error) {
	sc, sum := scripts.Known.OfText(text)
	switch {
	case sc != nil:
		return sc, nil
	case len(text) > scripts.MaxBytes:
		return nil, lacksScript("", resp.Error("ERR weir runs no Lua, and recognises no script of "+
			strconv.Itoa(len(text))+" bytes; "+scriptNatives))
	}
	shown := hex.EncodeToString(sum[:])
	return nil, lacksScript(shown, resp.Error("ERR weir runs no Lua, and does not recognise the script with the SHA-1 "+
		shown+"; "+scriptNatives))
}

// planScript reads numkeys, keys and arguments of a script.
func planScript(s *Session, sc *scripts.Script, args [][]byte) error {
	n, err := scriptKeys(args)
	keys := args[1:]
	switch {
	case err != nil:
		return err
	case !sc.Takes(n), len(keys)-n != len(sc.Args):
		return lacksScript("", resp.Error("ERR "+sc.Name+" takes "+strconv.Itoa(sc.Keys)+" keys and "+
			strconv.Itoa(len(sc.Args))+" arguments"))
	}
	if sc.Several != 0 {
		return errAlone
	}
	op, err := s.op(engine.OpScript, keys[0])
	if err != nil {
		return err
	}
	op.Script = s.batch.NextScript()
	op.Script.ID = sc.ID
	argv := keys[n:]
	if err := scripts.ReadArgs(sc.Args, op.Script, argv); err != nil {
		return err
	}
	if sc.Variant != 0 {
		op.Script.Args[engine.MaxScriptArgs-1] = sc.Variant
	}
	for _, value := range op.Script.Values {
		if err := s.srv.checkValue(value); err != nil {
			return err
		}
	}
	if sc.Check != nil {
		if err := sc.Check(op.Script, argv); err != nil {
			return err
		}
	}
	if op.Key, err = sc.Key(keys[:n], op.Script); err != nil {
		return err
	}
	return arg.CheckKey(op.Key)
}

func answerScript(s *Session, ops []engine.Op, ds []engine.Decision) {
	sc, words := scripts.Known.Answering(ops[0].Script), ds[0].ScriptAnswer()
	if sc.Refusal != nil && !s.guarded(sc.Refusal(words)) {
		return
	}
	if sc.Says != nil {
		sc.Says(s.Reply, ops[0].Script, words)
		return
	}
	sc.Reply(s.Reply, words)
}

func runScriptLoad(s *Session, args [][]byte) {
	_, err := recognise(args[2])
	if s.guarded(err) {
		_, sum := scripts.Known.OfText(args[2])
		s.Bulk(hex.EncodeToString(sum[:]))
	}
}

func runScriptExists(s *Session, args [][]byte) {
	s.Array(len(args) - 2)
	for _, sum := range args[2:] {
		s.Bool(scripts.Known.OfSum(sum) != nil)
	}
}

func runScriptFlush(s *Session, args [][]byte) {
	if len(args) > 3 || len(args) == 3 && !limits.Is(args[2], "ASYNC") && !limits.Is(args[2], "SYNC") {
		s.fail(resp.Error("ERR SCRIPT FLUSH only support SYNC|ASYNC option"))
		return
	}
	s.OK()
}

// Operators delete all limiters that match a pattern by a line of Lua that passes the answer of KEYS to DEL. weir
// recognises this line with any literal pattern, and has the same effect. It finds the keys and then resets them, and
// other commands may run in between. Only EVAL recognises the line, because its text differs with the pattern. The
// script of a library that does the same has the pattern in place of its key.

const (
	deleteAllBegin = "return redis.call('del', unpack(redis.call('keys', '"
	deleteAllEnd   = "')))"
)

// errAlone is returned by the plan of a command for arguments that only its alone function can run. A transaction
// refuses such a command, because a transaction is one step.
const errAlone resp.Error = "ERR a script that acts on one key after the other is not allowed in MULTI"

// deleteAllPattern returns the pattern of the Lua line that deletes all keys which match it.
func deleteAllPattern(text []byte) (pattern []byte, ok bool) {
	pattern, begins := bytes.CutPrefix(text, []byte(deleteAllBegin))
	pattern, ends := bytes.CutSuffix(pattern, []byte(deleteAllEnd))
	literal := !bytes.ContainsAny(pattern, "'\\\r\n\x00")
	return pattern, begins && ends && literal && len(pattern) <= maxPatternBytes
}

// runSeveral runs a script that acts on several keys.
func runSeveral(s *Session, args [][]byte) {
	if sc := libraryScript(args[1]); sc != nil && sc.Several == scripts.TakesFirst {
		runTakeFirst(s, args)
		return
	}
	runDeleteAll(s, args)
}

// runTakeFirst gives its last argument to the first of some keys that does not exist, for the seconds in the second
// argument. It answers the first argument with the number of the key, or null if all exist. It tries one key after the
// other. Other commands may run in between, but no two get one key.
func runTakeFirst(s *Session, args [][]byte) {
	n, _ := scriptKeys(args[2:]) // the plan has checked the numbers of keys and arguments
	keys, argv := args[3:3+n], args[3+n:]
	ms, err := readLifetime(s.srv, "set", "EX", argv[1])
	if u := s.limits; u != nil && slices.ContainsFunc(keys, func(key []byte) bool { return !u.MayUse(key) }) {
		err = s.srv.Refused(service.ErrNoKey) // before any key is taken, as in Redis
	}
	taken := false
	for i := 0; i < n && err == nil && !taken; i++ {
		err = s.decideApart(func() error {
			err := planTextSet(s, keys[i], argv[2], engine.TextIfAbsent|engine.TextExpireMs, ms)
			if err != nil {
				return err
			}
			return s.checkOps(true, s.batch.Ops)
		}, func(_ []engine.Op, ds []engine.Decision) { taken = ds[0].ScriptAnswer()[3] == 1 })
		if taken {
			s.Bulk(string(argv[0]) + strconv.Itoa(i+1))
		}
	}
	if s.guarded(err) && !taken {
		s.Null()
	}
}

// runDeleteAll runs the Lua line that deletes all keys which match a pattern, or the script of a library that deletes
// the keys which match its first key. args are those of EVAL and EVALSHA, which planScript has checked for a library.
func runDeleteAll(s *Session, args [][]byte) {
	pattern, line := deleteAllPattern(args[1])
	_, err := scriptKeys(args[2:])
	if !line {
		pattern = args[3]
	}
	var names [][]byte
	reader := s.srv.Reader()
	if reader.Database = int(s.database); err == nil {
		var refused error
		err = reader.Read(nil, func(v limiter.View, _ time.Duration) { // READONLY does not apply to what is deleted
			names, refused = namesLike(s, v, pattern)
		})
		if err == nil {
			err = refused
		}
	}
	if err == nil && len(names) == 0 && line {
		sum := sha1.Sum(args[1])
		err = resp.Error("ERR Wrong number of args calling Redis command from script script: " +
			hex.EncodeToString(sum[:]) + ", on @user_script:1.")
	}
	deleted := int64(0)
	for len(names) > 0 && err == nil {
		n := min(len(names), MaxBatch/2) // a name may take two operations
		var some int64
		some, err = deleteNames(s, names[:n])
		deleted, names = deleted+some, names[n:]
	}
	switch {
	case !s.guarded(err):
	case line:
		s.Int(deleted)
	default:
		libraryScript(args[1]).Reply(s.Reply, [4]int64{deleted})
	}
}

// libraryScript returns the recognised script of a call, by its SHA-1 or its text.
func libraryScript(called []byte) *scripts.Script {
	if sc := scripts.Known.OfSum(called); sc != nil {
		return sc
	}
	sc, _ := scripts.Known.OfText(called)
	return sc
}

// namesLike returns the names that match a pattern. It returns an error if the user may not use all of them.
func namesLike(s *Session, v limiter.View, pattern []byte) ([][]byte, error) {
	found, err := keysLike(v, scanFilter{pattern: pattern}, nil)
	if err != nil {
		return nil, err
	}
	names := found.names()
	for _, name := range names {
		if u := s.limits; u != nil && (!u.MayUse(name) || !u.MayReach(v.Policies(), name)) {
			return nil, s.srv.Refused(service.ErrNoKey)
		}
	}
	return names, nil
}

// deleteNames resets the limiters behind names, and returns how many names had state to forget.
func deleteNames(s *Session, names [][]byte) (deleted int64, err error) {
	err = s.decideApart(func() error {
		for _, name := range names {
			if err := resetNamed(s, name, nil); err != nil {
				return err
			}
		}
		return nil
	}, func(ops []engine.Op, ds []engine.Decision) { deleted = resetNames(ops, ds) })
	return deleted, err
}

// decideApart decides the operations that plan begins, in a batch of their own. It calls use with the decisions if all
// of them succeeded.
func (s *Session) decideApart(plan func() error, use func(ops []engine.Op, ds []engine.Decision)) error {
	b := s.srv.Batches.Get()
	defer s.srv.Batches.Put(b)
	waiting := s.batch
	s.openBatch(b)
	err := plan()
	s.batch = waiting
	if err == nil && s.database != 0 {
		err = s.enterDatabase(b.Ops)
	}
	if err != nil {
		return err
	}
	ds := b.Decisions()
	if err = s.srv.Limiter.Decide(b.Ops, ds); err != nil {
		return err
	}
	s.srv.Waits.NotifyGiven(b.Ops)
	if err = s.failure(b.Ops, ds); err == nil { // some Raft groups may have failed
		use(b.Ops, ds)
	}
	return err
}

// scriptKeys parses numkeys, the first of args, and checks that at least so many arguments follow.
func scriptKeys(args [][]byte) (keys int, err error) {
	n, ok := limits.Int(args[0])
	switch {
	case !ok:
		return 0, arg.NotInteger("numkeys", "must be the number of keys", args[0])
	case n < 0:
		return 0, errNegKeys
	case n > int64(len(args)-1):
		return 0, errFewKeys
	}
	return int(n), nil
}
