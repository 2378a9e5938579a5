package scripts

import (
	"crypto/sha1"
	"encoding/hex"
	"sync"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/server/resp"
)

// A library that keeps its limiters in Redis sends the same few scripts for years. weir recognises them by their SHA-1,
// as Redis does, and executes them natively. A script that people copy from a document has another SHA-1 wherever it is
// indented differently, so weir recognises such scripts by the SHA-1 of their form (see normal) as well. weir contains
// neither Lua nor the texts of the scripts.

// Script is one operation of a library's scripts.
type Script struct {
	ID   engine.ScriptID
	Name string // the library's name for it
	Keys int    // number of keys; the first one names the limiter
	Args string // an ArgKind for each argument
	// Check rejects calls that Redis would not execute, and may change the numbers. It may be nil.
	Check func(call *engine.Script, argv [][]byte) error
	// Reply writes the reply as Redis would convert it from Lua.
	Reply func(w resp.Reply, words [4]int64)
	// Says replaces Reply for a reply that repeats arguments.
	Says func(w resp.Reply, call *engine.Script, words [4]int64)
	// Windows: the first two keys are those of two windows, and the limiter is their common name. See Key.
	Windows bool
	// Static: the last key would name a limit that changes. It may be missing, and must be empty otherwise.
	Static bool
	// Several is set for a script that acts on several keys. Its Reply gets the number of those that it changed.
	Several Several
	// Variant distinguishes scripts with one ID and other replies. It is the last argument of the operation, which the
	// engine uses for UpstashTake only.
	Variant float64
	// Refusal returns the error that replaces the reply, or nil. It may be nil.
	Refusal func(words [4]int64) error
	texts   []scriptText
	form    string // SHA-1 of the form of the texts; empty: only the exact texts are recognised
}

// Several says how a script acts on several keys. Such a script has no operation of its own.
type Several byte

const (
	DeletesLike Several = 1 + iota // deletes what the pattern in place of its key matches
	TakesFirst                     // gives its last argument to the first of any number of keys that does not exist
)

// Takes reports whether a script can have n keys.
func (sc *Script) Takes(n int) bool {
	return n == sc.Keys || n == sc.Keys-1 && sc.Static || n > sc.Keys && sc.Several == TakesFirst
}

// scriptText is one published text of a script: the SHA-1 of the exact bytes, and the releases that send them.
type scriptText struct{ sha1, releases string }

// dialect is a library with its scripts.
type dialect struct {
	name     string // as users know it
	registry string // registry that publishes it
	native   string // equivalent native commands
	scripts  []*Script
}

// Sum is the SHA-1 of a script, by which it is called.
type Sum [sha1.Size]byte

// scriptTable finds scripts. Its exported fields are immutable.
type scriptTable struct {
	BySum  map[Sum]*Script
	byID   map[answering]*Script
	byForm map[Sum]*Script

	mu      sync.RWMutex
	learned map[Sum]*Script // by the SHA-1 of a text that was recognised by its form: EVALSHA may follow
	order   [maxLearned]Sum // the keys of learned as a ring
	next    int             // where order has the oldest
}

// answering is what an operation tells about the script whose reply answers it.
type answering struct {
	id      engine.ScriptID
	variant float64
}

// Answering returns a script with the reply to an operation.
func (t *scriptTable) Answering(call *engine.Script) *Script {
	return t.byID[answering{call.ID, call.Args[engine.MaxScriptArgs-1]}]
}

// maxLearned bounds scriptTable.learned. Beyond it weir forgets a text; its next EVALSHA is answered with NOSCRIPT, as
// by a Redis that was restarted.
const maxLearned = 1024

// Known contains the scripts that every server recognises.
var Known = newScriptTable(dialects())

func dialects() []*dialect {
	return []*dialect{
		springGateway(), redisRate(), rateLimiterFlexible(), rateLimitRedis(), fastifyRateLimit(),
		redisGCRA(), asyncRatelimiter(), nestThrottler(),
		pythonLimits(), fastapiLimiter(), uluLimiter(), goZero(), traefik(), bucket4j(), throttled(), laravel(),
		redisPyLock(), redsync(), redisSemaphore(), upstash(),
		gatewayBucket(), marketBucket(), slidingSet(),
	}
}

func newScriptTable(all []*dialect) *scriptTable {
	t := &scriptTable{BySum: make(map[Sum]*Script), byID: make(map[answering]*Script),
		byForm: make(map[Sum]*Script), learned: make(map[Sum]*Script)}
	for _, d := range all {
		for _, sc := range d.scripts {
			t.byID[answering{sc.ID, sc.Variant}] = sc
			for _, text := range sc.texts {
				sum, ok := parseSum([]byte(text.sha1))
				if !ok || t.BySum[sum] != nil {
					panic("server: not the SHA-1 of one script: " + text.sha1)
				}
				t.BySum[sum] = sc
			}
			if form, ok := parseSum([]byte(sc.form)); ok {
				t.byForm[form] = sc
			}
		}
	}
	return t
}

// parseSum parses a SHA-1 in hexadecimal, ignoring case.
func parseSum(b []byte) (sum Sum, ok bool) {
	if len(b) != hex.EncodedLen(len(sum)) {
		return sum, false
	}
	_, err := hex.Decode(sum[:], b)
	return sum, err == nil
}

// MaxBytes exceeds every recognised text. Longer texts are not hashed, so that a rejection costs no more than reading
// the text did.
const MaxBytes = 8 << 10

// OfText returns the script with a text, and the text's SHA-1 unless the text is too long.
func (t *scriptTable) OfText(text []byte) (*Script, Sum) {
	if len(text) > MaxBytes {
		return nil, Sum{}
	}
	sum := Sum(sha1.Sum(text))
	if sc := t.of(sum); sc != nil {
		return sc, sum
	}
	form, ok := normal(text)
	if !ok {
		return nil, sum
	}
	sc := t.byForm[sha1.Sum(form)]
	if sc != nil {
		t.learn(sum, sc)
	}
	return sc, sum
}

// OfSum returns the script with a SHA-1 in hexadecimal.
func (t *scriptTable) OfSum(text []byte) *Script {
	sum, ok := parseSum(text)
	if !ok {
		return nil
	}
	return t.of(sum)
}

func (t *scriptTable) of(sum Sum) *Script {
	if sc := t.BySum[sum]; sc != nil {
		return sc
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.learned[sum]
}

func (t *scriptTable) learn(sum Sum, sc *Script) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.learned[sum] == nil {
		oldest := &t.order[t.next]
		delete(t.learned, *oldest)
		*oldest, t.next = sum, (t.next+1)%maxLearned
	}
	t.learned[sum] = sc
}
