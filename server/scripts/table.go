package scripts

import (
	"crypto/sha1"
	"encoding/hex"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/server/resp"
)

// A library that keeps its limiters in Redis sends the same few scripts for years.
// weir knows them by their SHA-1, which is what Redis calls them by, and does natively
// what they do. It has no Lua, and not their text.

// Script is something that a library's scripts do.
type Script struct {
	ID   engine.ScriptID
	Name string // what the library calls it
	Keys int    // the keys it takes; the first one names the limiter
	Args string // the arguments it takes: an ArgKind for each
	// Check refuses what no Redis would carry out, and may change the numbers. May be nil.
	Check func(call *engine.Script, argv [][]byte) error
	// Reply writes the answer as Redis would convert it from Lua.
	Reply func(w *resp.Writer, words [4]int64)
	// Refusal is the error that takes the place of the answer, or nil. May be nil.
	Refusal func(words [4]int64) error
	texts   []scriptText
}

// scriptText is one published text of a script: the SHA-1 of the exact bytes that
// the library sends, and the releases that send them.
type scriptText struct{ sha1, releases string }

// dialect is a library with its scripts.
type dialect struct {
	name     string // as its users know it
	registry string // where it is published
	native   string // the command that does the same, to move to
	scripts  []*Script
}

// Sum is the name of a script.
type Sum [sha1.Size]byte

// scriptTable finds scripts. It does not change.
type scriptTable struct {
	BySum map[Sum]*Script
	ByID  map[engine.ScriptID]*Script
}

// Known is what all servers recognise.
var Known = newScriptTable(dialects())

func dialects() []*dialect {
	return []*dialect{
		springGateway(), redisRate(), rateLimiterFlexible(), rateLimitRedis(), fastifyRateLimit(), redisGCRA(), nestThrottler(),
		pythonLimits(), fastapiLimiter(), uluLimiter(), goZero(), bucket4j(), throttled(), laravelCache(),
		gatewayBucket(), marketBucket(), slidingSet(),
	}
}

func newScriptTable(all []*dialect) *scriptTable {
	t := &scriptTable{BySum: make(map[Sum]*Script), ByID: make(map[engine.ScriptID]*Script)}
	for _, d := range all {
		for _, sc := range d.scripts {
			t.ByID[sc.ID] = sc
			for _, text := range sc.texts {
				sum, ok := parseSum([]byte(text.sha1))
				if !ok || t.BySum[sum] != nil {
					panic("server: not the SHA-1 of one script: " + text.sha1)
				}
				t.BySum[sum] = sc
			}
		}
	}
	return t
}

// parseSum reads a SHA-1 in hexadecimal, in either case.
func parseSum(b []byte) (sum Sum, ok bool) {
	if len(b) != hex.EncodedLen(len(sum)) {
		return sum, false
	}
	_, err := hex.Decode(sum[:], b)
	return sum, err == nil
}

// MaxBytes is longer than every text that is recognised. Anything beyond is not
// hashed, so that refusing it costs no more than reading it did.
const MaxBytes = 8 << 10

// OfText finds the script with a text, and the text's SHA-1 unless it is too long.
func (t *scriptTable) OfText(text []byte) (*Script, Sum) {
	if len(text) > MaxBytes {
		return nil, Sum{}
	}
	sum := Sum(sha1.Sum(text))
	return t.BySum[sum], sum
}

// OfSum finds a script by its SHA-1 in hexadecimal.
func (t *scriptTable) OfSum(text []byte) *Script {
	sum, ok := parseSum(text)
	if !ok {
		return nil
	}
	return t.BySum[sum]
}
