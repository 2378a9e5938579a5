package commands

import (
	"math"
	"strconv"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/quote"
	"github.com/weir-project/weir/limits"
	"github.com/weir-project/weir/server/arg"
	"github.com/weir-project/weir/server/resp"
	"github.com/weir-project/weir/server/scripts"
	"github.com/weir-project/weir/server/service"
)

// Strings are byte strings that limiter libraries keep and only their clients interpret. A whole number is a string
// too. It is stored as a count, for scripts and INCR.

var (
	paramValue    = param{"value", "bytes, at most --max-value-bytes"}
	paramLifetime = param{"EX, PX, EXAT, PXAT", "the time to live, or when it ends in Unix time"}
)

const oldValueReply = "The value before, or nothing."

func stringCommands() []*command {
	commands := []*command{
		{name: "SET", arity: -3, syntax: "key value [NX|XX] [GET] [EX seconds|PX ms|EXAT time|PXAT time|KEEPTTL]",
			summary: "Keep a string or a count",
			params: []param{paramString, paramValue, {"NX, XX", "only where there is none, or one"},
				{"GET", "answer the value before"},
				paramLifetime, {"KEEPTTL", "leave the time to live; without any of them there is none"}},
			reply: "OK, or nothing where NX or XX kept it from being set. With GET the value before, or nothing.",
			shown: []example{{"SET bucket:42 abc NX PX 60000", "OK", ""}, {"SET bucket:42 def NX", "nil", ""},
				{"GET bucket:42", "abc", ""}},
			plan: planSet, answer: answerSet},
		{name: "SETEX", arity: 4, syntax: "key seconds value", summary: "Keep a string for a time", reply: "OK.",
			params: []param{paramString, {"seconds", "the time to live"}, paramValue}, plan: planSetFor("setex", "EX"),
			answer: answerOK},
		{name: "PSETEX", arity: 4, syntax: "key ms value", summary: "Keep a string for a time", reply: "OK.",
			params: []param{paramString, {"ms", "the time to live"}, paramValue}, plan: planSetFor("psetex", "PX"),
			answer: answerOK},
		{name: "SETNX", arity: 3, syntax: "key value", summary: "Keep a string where there is none",
			reply:  "1, or 0 when there is one.",
			params: []param{paramString, paramValue}, plan: planSetNX, answer: answerWasSet},
		{name: "GETSET", arity: 3, syntax: "key value", summary: "Keep a string and answer the one before",
			reply:  oldValueReply,
			params: []param{paramString, paramValue}, plan: planGetSet, answer: answerGet},
		{name: "GETDEL", arity: 2, syntax: "key", summary: "Answer a string and delete it", reply: oldValueReply,
			params: []param{paramString}, plan: planOnString(engine.TextTake), answer: answerGet},
		{name: "GETEX", arity: -2, syntax: "key [EX seconds|PX ms|EXAT time|PXAT time|PERSIST]",
			summary: "Answer a string and change its time to live",
			params:  []param{paramString, paramLifetime, {"PERSIST", "remove the time to live"}},
			reply:   "The value, or nothing.",
			plan:    planGetEx, answer: answerGet},
		{name: "MGET", arity: -2, syntax: "key [key ...]", summary: "The strings under some keys",
			params: []param{paramString},
			reply:  "An array: for each key its value, or nothing where there is no string.", keys: keySpec{1, -1, 1},
			plan: planMGet, answer: answerMGet, cost: "O(n) in the number of keys"},
		{name: "STRLEN", arity: 2, syntax: "key", summary: "The length of a string",
			reply:  "Bytes, 0 where there is none.",
			params: []param{paramString}, plan: planGet, answer: answerLength},
		{name: "APPEND", arity: 3, syntax: "key value", summary: "Add to the end of a string",
			reply:  "The length in bytes.",
			params: []param{paramString, paramValue}, plan: planAppend},
	}
	return onCounts(commands)
}

var paramString = param{"key", "a string, or a count that a recognised script keeps"}

// onText begins an operation on a string, with its byte arguments.
func onText(s *Session, key []byte, id engine.ScriptID, values ...[]byte) (*engine.Script, error) {
	for _, value := range values {
		if err := s.srv.checkValue(value); err != nil {
			return nil, err
		}
	}
	call, err := onCount(s, key, id)
	if err == nil {
		copy(call.Values[:], values)
		s.batch.Values += s.srv.cfg.MaxValueBytes
	}
	return call, err
}

// checkValue refuses a byte string that is longer than the limit of stored strings.
func (s *Shared) checkValue(value []byte) error {
	if len(value) > s.cfg.MaxValueBytes {
		text := "a value must be at most " + strconv.Itoa(s.cfg.MaxValueBytes) + " bytes (--max-value-bytes)"
		return lacks(service.PassesBound, resp.Error("ERR "+text+", not "+strconv.Itoa(len(value))), text)
	}
	return nil
}

func planOnString(id engine.ScriptID) func(*Session, [][]byte) error {
	return func(s *Session, args [][]byte) error {
		_, err := onText(s, args[1], id)
		return err
	}
}

func planSet(s *Session, args [][]byte) error {
	if call, err := planCountSet(s, args); call != nil || err != nil {
		return err
	}
	how, ms, err := stringOptions(s.srv, "set", args[3:], setWords)
	if err != nil {
		return err
	}
	return planTextSet(s, args[1], args[2], how, ms)
}

func planTextSet(s *Session, key, value []byte, how, ms int64) error {
	call, err := onText(s, key, engine.TextSet, value)
	if err == nil {
		call.Args[0], call.Args[1] = float64(how), float64(ms)
	}
	return err
}

func planSetFor(name, word string) func(*Session, [][]byte) error {
	return func(s *Session, args [][]byte) error {
		ms, err := readLifetime(s.srv, name, word, args[2])
		if err != nil {
			return err
		}
		return planTextSet(s, args[1], args[3], engine.TextExpireMs, ms)
	}
}

func planSetNX(s *Session, args [][]byte) error {
	return planTextSet(s, args[1], args[2], engine.TextIfAbsent, 0)
}

func planGetSet(s *Session, args [][]byte) error {
	return planTextSet(s, args[1], args[2], engine.TextGetOld, 0)
}

func planGetEx(s *Session, args [][]byte) error {
	how, ms, err := stringOptions(s.srv, "getex", args[2:], getExWords)
	if err != nil {
		return err
	}
	call, err := onText(s, args[1], engine.TextTouch)
	if err == nil {
		call.Args[0], call.Args[1] = float64(how), float64(ms)
	}
	return err
}

func planMGet(s *Session, args [][]byte) error {
	if most := maxBatchValues / s.srv.cfg.MaxValueBytes; len(args)-1 > most {
		return lacks(service.PassesBound, resp.Error("ERR MGET takes at most "+strconv.Itoa(most)+
			" keys where --max-value-bytes is "+strconv.Itoa(s.srv.cfg.MaxValueBytes)), "")
	}
	for _, key := range args[1:] {
		if _, err := onText(s, key, engine.TextLook); err != nil {
			return err
		}
	}
	return nil
}

func planAppend(s *Session, args [][]byte) error {
	call, err := onText(s, args[1], engine.TextAppend, args[2])
	if err == nil {
		call.Args[0] = float64(s.srv.cfg.MaxValueBytes)
	}
	return err
}

// answerSet answers the previous value, or whether the value was set.
func answerSet(s *Session, ops []engine.Op, ds []engine.Decision) {
	words, call := ds[0].ScriptAnswer(), ops[0].Script
	switch {
	case call.ID == engine.TextSet && engine.Truncate(call.Args[0])&engine.TextGetOld != 0:
		writeValue(s, &ds[0])
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
		writeValue(s, &ds[i])
	}
}

func answerLength(s *Session, ops []engine.Op, ds []engine.Decision) {
	if text, ok := policyText(s.srv, ops, ds); ok {
		s.Int(int64(len(text)))
		return
	}
	switch words := ds[0].ScriptAnswer(); {
	case words[2] == 1:
		s.Int(int64(len(ds[0].Value)))
	case words[1] == -2:
		s.Int(0)
	default:
		s.Int(int64(len(strconv.FormatInt(words[0], 10))))
	}
}

// writeValue writes the string that a script answered.
func writeValue(s *Session, d *engine.Decision) {
	if words := d.ScriptAnswer(); words[2] == 0 {
		scripts.ReplyGet(s.Reply, words)
		return
	}
	s.Bulk(d.Value)
}

// stringWord is an option of a command on strings.
type stringWord struct {
	word  string
	bit   int64
	not   int64 // conflicting bits; the word itself may be repeated, as in Redis
	timed bool  // a time follows the word
}

// These bits distinguish EX, PX, EXAT and PXAT while options are read.
const (
	wordEX = 1 << (32 + iota)
	wordPX
	wordEXAT
	wordPXAT
	anyLifetime = wordEX | wordPX | wordEXAT | wordPXAT
	wordBits    = ^(1<<32 - 1)
)

func lifetimeWord(word string, bit int64) stringWord {
	return stringWord{word, bit | engine.TextExpireMs, anyLifetime&^bit | engine.TextKeepExpiry | engine.TextPersist,
		true}
}

var (
	lifetimeWords = []stringWord{lifetimeWord("EX", wordEX), lifetimeWord("PX", wordPX), lifetimeWord("EXAT", wordEXAT),
		lifetimeWord("PXAT", wordPXAT)}
	setWords = append([]stringWord{
		{"NX", engine.TextIfAbsent, engine.TextIfPresent, false},
		{"XX", engine.TextIfPresent, engine.TextIfAbsent, false},
		{"GET", engine.TextGetOld, 0, false}, {"KEEPTTL", engine.TextKeepExpiry, anyLifetime, false},
	}, lifetimeWords...)
	getExWords = append([]stringWord{{"PERSIST", engine.TextPersist, anyLifetime, false}}, lifetimeWords...)
)

// stringOptions reads all options of a command, and then the time that one of them names.
func stringOptions(srv *Shared, name string, args [][]byte, words []stringWord) (how, ms int64, err error) {
	var timed *stringWord
	var time []byte
	for len(args) > 0 {
		w := findWord(words, args[0])
		if w == nil || how&w.not != 0 || w.timed && len(args) < 2 {
			return 0, 0, arg.ErrSyntax
		}
		how |= w.bit
		if args = args[1:]; w.timed {
			timed, time, args = w, args[0], args[1:]
		}
	}
	if timed != nil {
		ms, err = readLifetime(srv, name, timed.word, time)
	}
	return how &^ wordBits, ms, err
}

func findWord(words []stringWord, b []byte) *stringWord {
	for i := range words {
		if limits.Is(b, words[i].word) {
			return &words[i]
		}
	}
	return nil
}

// readLifetime reads the argument of EX, PX, EXAT and PXAT as milliseconds from now.
func readLifetime(srv *Shared, name, word string, b []byte) (ms int64, err error) {
	n, ok := redisInt(b)
	if !ok {
		return 0, arg.NotInteger(word, "must be a whole number", b)
	}
	if n <= 0 {
		return 0, invalidExpire(name, word, b)
	}
	return fromNow(srv, name, word, n, b)
}

// fromNow turns a number of seconds or milliseconds, or a Unix time in these units, into milliseconds from now.
func fromNow(srv *Shared, name, word string, n int64, b []byte) (ms int64, err error) {
	unitMs := int64(1000)
	if word[0] == 'P' {
		unitMs = 1
	}
	now := srv.Limiter.Now()
	nowMs := (now.NowNs + now.WallOffsetNs) / 1e6
	absolute := word == "EXAT" || word == "PXAT"
	switch {
	case n > math.MaxInt64/unitMs || n < math.MinInt64/unitMs, !absolute && n*unitMs > math.MaxInt64-nowMs:
		return 0, invalidExpire(name, word, b)
	case absolute:
		ms = max(n*unitMs, -scripts.MaxNumber) - nowMs
	default:
		ms = n * unitMs
	}
	if ms > scripts.MaxNumber {
		return 0, invalidExpire(name, word, b)
	}
	return max(ms, -scripts.MaxNumber), nil
}

// invalidExpire returns Redis' own text, followed by the accepted values.
func invalidExpire(name, word string, b []byte) error {
	return resp.Error("ERR invalid expire time in '" + name + "' command: " + word +
		" must be a time above 0 and within 285,000 years, not " + quote.Text(b))
}

// redisInt reads a 64-bit integer as Redis does: only in the form in which Redis writes it.
func redisInt(b []byte) (int64, bool) {
	n, ok := limits.Int(b)
	digits := b
	if len(b) > 0 && b[0] == '-' {
		digits = b[1:]
	}
	return n, ok && (digits[0] != '0' || len(b) == 1)
}

// expireWords are the conditions of EXPIRE. Pairs of contradicting conditions have errors of their own.
var expireWords = []stringWord{
	{"NX", engine.TextIfNoExpiry, 0, false}, {"XX", engine.TextIfExpiry, 0, false},
	{"GT", engine.TextIfLater, 0, false}, {"LT", engine.TextIfSooner, 0, false},
}

// expireConditions reads the conditions of EXPIRE.
func expireConditions(args [][]byte) (how int64, err error) {
	for _, b := range args {
		w := findWord(expireWords, b)
		if w == nil {
			const accepted = "the condition must be NX, XX, GT or LT"
			return 0, lacks(service.LacksOption, resp.Error("ERR Unsupported option "+
				quote.Printable(b, quote.MaxBytes)+": "+accepted), accepted)
		}
		how |= w.bit
	}
	has := func(bits int64) bool { return how&bits != 0 }
	switch {
	case has(engine.TextIfNoExpiry) && has(engine.TextIfExpiry|engine.TextIfLater|engine.TextIfSooner):
		return 0, resp.Error("ERR NX and XX, GT or LT options at the same time are not compatible")
	case has(engine.TextIfLater) && has(engine.TextIfSooner):
		return 0, resp.Error("ERR GT and LT options at the same time are not compatible")
	}
	return how, nil
}
