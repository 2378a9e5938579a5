package store

import (
	"github.com/weir-project/weir/engine/internal/leases"
	"github.com/weir-project/weir/engine/internal/rule"
	"github.com/weir-project/weir/engine/internal/script"
	"github.com/weir-project/weir/engine/internal/unitlog"
)

const (
	BlockLen = 9 // and the reason
	TokenLen = 48
)

var StateLens = [NumKinds]int{
	KindBlock: BlockLen, rule.TokenBucket: ShortBucketLen, rule.LeakyBucket: ShortBucketLen,
	rule.FixedWindow: 16, rule.SlidingLog: unitlog.StateLen, rule.SlidingCounter: 24,
	rule.Concurrency: leases.StateLen, rule.Strike: unitlog.StateLen + 8, rule.Counter: 16,
	rule.Scripted: script.StateLen, KindToken: TokenLen,
	KindHold: holdHead, kindAllocations: leases.StateLen,
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

// ReadBlock returns the content of a block's state: when it ends and why it is there. As stored
// it is until(8), whose sign says that the block holds everywhere, reasonLen(1) and reason.
func ReadBlock(state []byte) (untilNs int64, reason []byte) {
	return int64(le.Uint64(state) &^ everywhereBit), state[BlockLen : BlockLen+int(state[8])]
}

// everywhereBit of the time at which a block ends says that it holds everywhere.
const everywhereBit = 1 << 63

// IsEverywhere reports whether a block holds everywhere.
func IsEverywhere(state []byte) bool { return le.Uint64(state)&everywhereBit != 0 }

// WriteBlock stores when a block ends, whether it holds everywhere, and why it is there.
func WriteBlock(state []byte, untilNs int64, everywhere bool, reason []byte) {
	until := uint64(untilNs)
	if everywhere {
		until |= everywhereBit
	}
	le.PutUint64(state, until)
	state[8] = uint8(len(reason))
	copy(state[BlockLen:], reason)
}

// Answer is a remembered answer: the numbers that a repeated request gets. It is a denial if the first number is 0
// and the last is not negative. The lowest bits of the last number contain the limit.
type Answer [5]int64

// LimitBits is how many bits the limit has in the last number of an answer.
const LimitBits = 54

func (a *Answer) denied() bool {
	return a[0] == 0 && a[4] >= 0 && a[4]&(1<<LimitBits-1) > 0
}

// A token's state is an answer and when it is forgotten.

// ReadToken returns a remembered answer, and when it is forgotten.
func ReadToken(state []byte) (a Answer, untilNs int64) {
	for i := range a {
		a[i] = int64(le.Uint64(state[i*8:]))
	}
	return a, tokenUntilNs(state)
}

// tokenUntilNs is when an answer is forgotten.
func tokenUntilNs(state []byte) int64 { return int64(le.Uint64(state[40:])) }

// WriteToken stores an answer and when it is forgotten.
func WriteToken(state []byte, a *Answer, untilNs int64) {
	for i, n := range a {
		le.PutUint64(state[i*8:], uint64(n))
	}
	le.PutUint64(state[40:], uint64(untilNs))
}

// The state of a strike limiter is a log and the time until which it blocks: log blockedNs(8).

// StrikeBlockedNs returns when the penalty of a strike limiter ends.
func StrikeBlockedNs(state []byte) int64 { return int64(le.Uint64(state[unitlog.StateLen:])) }

// SetStrikeBlocked stores when the penalty of a strike limiter ends.
func SetStrikeBlocked(state []byte, untilNs int64) {
	le.PutUint64(state[unitlog.StateLen:], uint64(untilNs))
}

// Counter is a counter's value and its expiry: value(8) expires(8), Never for none.
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
