package store

import (
	"github.com/weir-project/weir/engine/internal/leases"
	"github.com/weir-project/weir/engine/internal/rule"
	"github.com/weir-project/weir/engine/internal/script"
	"github.com/weir-project/weir/engine/internal/unitlog"
)

const (
	BlockLen  = 9 // without the reason, which follows
	answerLen = 48
	TokenLen  = answerLen + 16
)

// StateLens has the length of a state in bytes, by kind. It excludes the variable part of a block or a hold, and
// has ShortBucketLen for buckets.
var StateLens = [NumKinds]int{
	KindBlock: BlockLen, rule.TokenBucket: ShortBucketLen, rule.LeakyBucket: ShortBucketLen,
	rule.FixedWindow: 16, rule.SlidingLog: unitlog.StateLen, rule.SlidingCounter: 24,
	rule.Concurrency: leases.StateLen, rule.Strike: unitlog.StateLen + 8, rule.Counter: 16,
	rule.Scripted: script.StateLen, KindToken: TokenLen,
	KindHold: holdHead, kindAllocations: leases.StateLen, kindBundle: 1,
}

// stateLen returns the length of the state. For blocks and holds it excludes the variable part.
func stateLen(e Entry) int {
	if e.has(flagLong) {
		return LongBucketLen
	}
	return StateLens[e.Kind()]
}

// logState returns the part of the state that is a log, or nil if the entry has none.
func logState(e Entry) []byte {
	switch e.Kind() {
	case uint8(rule.SlidingLog), uint8(rule.Strike):
		return e.State()
	case uint8(rule.Scripted):
		return script.LogState(e.State())
	}
	return nil
}

// Block is an administrative block. The zero value is none.
type Block struct {
	UntilNs int64 // 0: no block
	Reason  []byte
	Version uint64 // of a block everywhere: see engine.Item; 0: unknown, or kept with the order
}

// A key may have a block of its own and a block everywhere. The state of the entry is until(8) reasonLen(1) reason.
// The highest bit of until is everywhereBit. The state of a key with both blocks has bothBlocks instead of reasonLen,
// and then reasonLen(1) reason of its own block, and until(8) reasonLen(1) reason of its block everywhere. If a block
// everywhere has a version, hasVersion and version(8) are before its reasonLen.

// everywhereBit marks a block everywhere, in the time at which the block ends.
const everywhereBit = 1 << 63

// bothBlocks marks the state of a key with both blocks, and hasVersion a block with a version. Both are longer than a
// reason.
const (
	bothBlocks = 255
	hasVersion = 254
	versionLen = 1 + 8
)

// ReadBlocks decodes the state of a key's blocks. The reasons are parts of the state.
func ReadBlocks(state []byte) (own, everywhere Block) {
	until := le.Uint64(state)
	if state[8] == bothBlocks {
		own = Block{UntilNs: int64(until), Reason: reasonAt(state[9:])}
		second := state[10+len(own.Reason):]
		return own, readBlock(int64(le.Uint64(second)), second[8:])
	}
	b := readBlock(int64(until&^everywhereBit), state[8:])
	if until&everywhereBit != 0 {
		return Block{}, b
	}
	return b, Block{}
}

// readBlock decodes what follows the end of a block.
func readBlock(untilNs int64, b []byte) Block {
	version := uint64(0)
	if b[0] == hasVersion {
		version, b = le.Uint64(b[1:]), b[versionLen:]
	}
	return Block{untilNs, reasonAt(b), version}
}

func reasonAt(b []byte) []byte { return b[1 : 1+int(b[0])] }

// BlocksLen returns the length of the state of a key's blocks, of which at least one must exist.
func BlocksLen(own, everywhere Block) int {
	n := BlockLen + len(own.Reason) + len(everywhere.Reason)
	if own.UntilNs != 0 && everywhere.UntilNs != 0 {
		n += BlockLen + 1
	}
	if everywhere.Version != 0 {
		n += versionLen
	}
	return n
}

// WriteBlocks stores the blocks of a key, of which at least one must exist. The reasons must not be parts of the state.
func WriteBlocks(state []byte, own, everywhere Block) {
	switch {
	case own.UntilNs == 0:
		writeBlock(state, uint64(everywhere.UntilNs)|everywhereBit, everywhere)
	case everywhere.UntilNs == 0:
		writeBlock(state, uint64(own.UntilNs), own)
	default:
		le.PutUint64(state, uint64(own.UntilNs))
		state[8], state[9] = bothBlocks, uint8(len(own.Reason))
		n := 10 + copy(state[10:], own.Reason)
		writeBlock(state[n:], uint64(everywhere.UntilNs), everywhere)
	}
}

func writeBlock(state []byte, until uint64, b Block) {
	le.PutUint64(state, until)
	n := 8
	if b.Version != 0 {
		state[n] = hasVersion
		le.PutUint64(state[n+1:], b.Version)
		n += versionLen
	}
	state[n] = uint8(len(b.Reason))
	copy(state[n+1:], b.Reason)
}

// Answer is a remembered answer: the numbers that a repeated request gets. The lowest LimitBits bits of the last
// number are the limit. An answer is a denial if the first number is 0, the last is not negative, and the limit is
// not 0.
type Answer [5]int64

// LimitBits is how many bits the limit has in the last number of an answer.
const LimitBits = 54

func (a *Answer) denied() bool {
	return a[0] == 0 && a[4] >= 0 && a[4]&(1<<LimitBits-1) > 0
}

// Asked is what the request of a token asks for. Zero: the request was stored by an older version of weir, or it came
// from one.
type Asked [TokenLen - answerLen]byte

// The state of a token is answer(40) until(8) asked(16): the answer, the time at which it is forgotten, and what its
// request asks for.

// ReadToken returns a remembered answer and its request.
func ReadToken(state []byte) (a Answer, asked Asked) {
	return readAnswer(state), Asked(state[answerLen:])
}

func readAnswer(state []byte) (a Answer) {
	for i := range a {
		a[i] = int64(le.Uint64(state[i*8:]))
	}
	return a
}

// forgetNs is when an answer is forgotten.
func forgetNs(state []byte) int64 { return int64(le.Uint64(state[40:])) }

// WriteToken stores an answer, its request, and when they are forgotten.
func WriteToken(state []byte, a *Answer, asked Asked, untilNs int64) {
	writeAnswer(state, a, untilNs)
	copy(state[answerLen:], asked[:])
}

func writeAnswer(state []byte, a *Answer, untilNs int64) {
	for i, n := range a {
		le.PutUint64(state[i*8:], uint64(n))
	}
	le.PutUint64(state[40:], uint64(untilNs))
}

// The state of a strike limiter is a log and the end of its penalty: log blockedNs(8).

// StrikeBlockedNs returns when the penalty of a strike limiter ends.
func StrikeBlockedNs(state []byte) int64 { return int64(le.Uint64(state[unitlog.StateLen:])) }

// SetStrikeBlocked stores when the penalty of a strike limiter ends.
func SetStrikeBlocked(state []byte, untilNs int64) {
	le.PutUint64(state[unitlog.StateLen:], uint64(untilNs))
}

// Counter is the state of a counter: value(8) expires(8). Without an expiry, ExpiresNs is arith.Never.
type Counter struct{ Value, ExpiresNs int64 }

// ReadCounter decodes the state of a counter.
func ReadCounter(state []byte) Counter {
	return Counter{int64(le.Uint64(state)), int64(le.Uint64(state[8:]))}
}

// Write stores the counter in a state.
func (c Counter) Write(state []byte) {
	le.PutUint64(state, uint64(c.Value))
	le.PutUint64(state[8:], uint64(c.ExpiresNs))
}
