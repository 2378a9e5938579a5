package commands

import (
	"math"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/server/arg"
	"github.com/weir-project/weir/server/resp"
	"github.com/weir-project/weir/server/scripts"
)

// stringWord is an option of a command on strings.
type stringWord struct {
	word  string
	bit   int64
	not   int64 // the bits beside which it may not stand; beside itself it may, as in Redis
	timed bool  // a time follows
}

// The bits of EX and its like tell them apart while options are read.
const (
	wordEX = 1 << (32 + iota)
	wordPX
	wordEXAT
	wordPXAT
	anyLifetime = wordEX | wordPX | wordEXAT | wordPXAT
	wordBits    = ^(1<<32 - 1)
)

func lifetimeWord(word string, bit int64) stringWord {
	return stringWord{word, bit | engine.TextExpireMs, anyLifetime&^bit | engine.TextKeepExpiry | engine.TextPersist, true}
}

var (
	lifetimeWords = []stringWord{lifetimeWord("EX", wordEX), lifetimeWord("PX", wordPX), lifetimeWord("EXAT", wordEXAT), lifetimeWord("PXAT", wordPXAT)}
	setWords      = append([]stringWord{
		{"NX", engine.TextIfAbsent, engine.TextIfPresent, false}, {"XX", engine.TextIfPresent, engine.TextIfAbsent, false},
		{"GET", engine.TextGetOld, 0, false}, {"KEEPTTL", engine.TextKeepExpiry, anyLifetime, false},
	}, lifetimeWords...)
	getExWords = append([]stringWord{{"PERSIST", engine.TextPersist, anyLifetime, false}}, lifetimeWords...)
)

// stringOptions reads the options of a command, all of them before the time that one names.
func (s *Session) stringOptions(name string, args [][]byte, words []stringWord) (how, ms int64, err error) {
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
		ms, err = s.lifetime(name, timed.word, time)
	}
	return how &^ wordBits, ms, err
}

func findWord(words []stringWord, b []byte) *stringWord {
	for i := range words {
		if arg.Is(b, words[i].word) {
			return &words[i]
		}
	}
	return nil
}

// lifetime reads the argument of EX, PX, EXAT and PXAT as milliseconds from now.
func (s *Session) lifetime(name, word string, b []byte) (ms int64, err error) {
	n, ok := redisInt(b)
	if !ok {
		return 0, arg.NotInteger(word, "must be a whole number", b)
	}
	if n <= 0 {
		return 0, invalidExpire(name, word, b)
	}
	return s.fromNow(name, word, n, b)
}

// fromNow turns a number of seconds or milliseconds, or a Unix time in them, into
// milliseconds from now.
func (s *Session) fromNow(name, word string, n int64, b []byte) (ms int64, err error) {
	unitMs := int64(1000)
	if word[0] == 'P' {
		unitMs = 1
	}
	now := s.srv.Limiter.Now()
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

// invalidExpire is Redis' own text, and what is accepted.
func invalidExpire(name, word string, b []byte) error {
	return resp.Error("ERR invalid expire time in '" + name + "' command: " + word + " must be a time above 0 and within 285,000 years, not " + resp.Quote(b))
}

// redisInt reads a 64-bit integer as Redis does: as it would write it.
func redisInt(b []byte) (int64, bool) {
	n, ok := arg.Int(b)
	digits := b
	if len(b) > 0 && b[0] == '-' {
		digits = b[1:]
	}
	return n, ok && (digits[0] != '0' || len(b) == 1)
}

// expireWords are the conditions of EXPIRE. Those of which two contradict each other have
// errors of their own.
var expireWords = []stringWord{
	{"NX", engine.TextIfNoExpiry, 0, false}, {"XX", engine.TextIfExpiry, 0, false},
	{"GT", engine.TextIfLater, 0, false}, {"LT", engine.TextIfSooner, 0, false},
}

// expireConditions reads the conditions of EXPIRE.
func expireConditions(args [][]byte) (how int64, err error) {
	for _, b := range args {
		w := findWord(expireWords, b)
		if w == nil {
			return 0, resp.Error("ERR Unsupported option " + resp.Printable(b, resp.MaxQuotedBytes) + ": the condition must be NX, XX, GT or LT")
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
