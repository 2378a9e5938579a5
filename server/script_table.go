package server

import (
	"crypto/sha1"
	"encoding/hex"

	"github.com/weir-project/weir/engine"
)

// A library that keeps its limiters in Redis sends the same few scripts for years.
// weir knows them by their SHA-1, which is what Redis calls them by, and does natively
// what they do. It has no Lua, and not their text.

// script is something that a library's scripts do.
type script struct {
	id   engine.ScriptID
	name string // what the library calls it
	keys int    // the keys it takes; the first one names the limiter
	args string // the arguments it takes: an argKind for each
	// check refuses what no Redis would carry out, and may change the numbers. May be nil.
	check func(call *engine.Script, argv [][]byte) error
	// reply writes the answer as Redis would convert it from Lua.
	reply func(w *replyWriter, words [4]int64)
	// refusal is the error that takes the place of the answer, or nil. May be nil.
	refusal func(words [4]int64) error
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
	scripts  []*script
}

// sha1Sum is the name of a script.
type sha1Sum [sha1.Size]byte

// scriptTable finds scripts. It does not change.
type scriptTable struct {
	bySum map[sha1Sum]*script
	byID  map[engine.ScriptID]*script
}

// scriptsKnown is what all servers recognise.
var scriptsKnown = newScriptTable(dialects())

func dialects() []*dialect {
	return []*dialect{
		springGateway(), redisRate(), rateLimiterFlexible(), rateLimitRedis(), fastifyRateLimit(), redisGCRA(), nestThrottler(),
		pythonLimits(), fastapiLimiter(), uluLimiter(), goZero(), bucket4j(), throttled(), laravelCache(),
		gatewayBucket(), marketBucket(), slidingSet(),
	}
}

func newScriptTable(all []*dialect) *scriptTable {
	t := &scriptTable{bySum: make(map[sha1Sum]*script), byID: make(map[engine.ScriptID]*script)}
	for _, d := range all {
		for _, sc := range d.scripts {
			t.byID[sc.id] = sc
			for _, text := range sc.texts {
				sum, ok := parseSum([]byte(text.sha1))
				if !ok || t.bySum[sum] != nil {
					panic("server: not the SHA-1 of one script: " + text.sha1)
				}
				t.bySum[sum] = sc
			}
		}
	}
	return t
}

// parseSum reads a SHA-1 in hexadecimal, in either case.
func parseSum(b []byte) (sum sha1Sum, ok bool) {
	if len(b) != hex.EncodedLen(len(sum)) {
		return sum, false
	}
	_, err := hex.Decode(sum[:], b)
	return sum, err == nil
}

// maxScriptBytes is longer than every text that is recognised. Anything beyond is not
// hashed, so that refusing it costs no more than reading it did.
const maxScriptBytes = 8 << 10

// ofText finds the script with a text, and the text's SHA-1 unless it is too long.
func (t *scriptTable) ofText(text []byte) (*script, sha1Sum) {
	if len(text) > maxScriptBytes {
		return nil, sha1Sum{}
	}
	sum := sha1Sum(sha1.Sum(text))
	return t.bySum[sum], sum
}

// ofSum finds a script by its SHA-1 in hexadecimal.
func (t *scriptTable) ofSum(text []byte) *script {
	sum, ok := parseSum(text)
	if !ok {
		return nil
	}
	return t.bySum[sum]
}
