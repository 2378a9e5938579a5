package engine

import (
	"github.com/weir-project/weir/engine/internal/leases"
	"github.com/weir-project/weir/engine/internal/script"
	"github.com/weir-project/weir/engine/internal/unitlog"
)

const (
	blockLen = 9 // and the reason
	tokenLen = 48
)

var stateLens = [numKinds]int{
	kindBlock: blockLen, TokenBucket: shortBucketLen, LeakyBucket: shortBucketLen, FixedWindow: 16, SlidingLog: unitlog.StateLen,
	SlidingCounter: 24, Concurrency: leases.StateLen, Strike: unitlog.StateLen + 8, Counter: 16, Scripted: script.StateLen, kindToken: tokenLen,
	kindHold: holdHead, kindClaims: leases.StateLen,
}

// stateLen is the length of the state, of blocks and holds without what follows it.
func stateLen(e entry) int {
	if e.has(flagLong) {
		return longBucketLen
	}
	return stateLens[e.kind()]
}

// logState is the part of the state that is a log; nil if the entry has none.
func logState(e entry) []byte {
	switch e.kind() {
	case uint8(SlidingLog), uint8(Strike):
		return e.state()
	case uint8(Scripted):
		return script.LogState(e.state())
	}
	return nil
}

// readBlock returns the content of a block's state: when it ends and why it is there.
func readBlock(state []byte) (untilNs int64, reason []byte) {
	return int64(le.Uint64(state) &^ everywhereBit), state[blockLen : blockLen+int(state[8])]
}

// everywhereBit of the time at which a block ends says that it holds everywhere.
const everywhereBit = 1 << 63

func isEverywhere(state []byte) bool { return le.Uint64(state)&everywhereBit != 0 }

func writeBlock(state []byte, untilNs int64, everywhere bool, reason []byte) {
	until := uint64(untilNs)
	if everywhere {
		until |= everywhereBit
	}
	le.PutUint64(state, until)
	state[8] = uint8(len(reason))
	copy(state[blockLen:], reason)
}

// A token's state: the decision's five numbers and when it is forgotten. The limit,
// at most MaxUnits, leaves room for Pair and Part, and for a sign: then it is the
// status, and all but Pair is zero.

// pairShift is where Pair and Part are.
const pairShift = 54

func readToken(state []byte) (d Decision, untilNs int64) {
	n := func(i int) int64 { return int64(le.Uint64(state[i*8:])) }
	d = Decision{
		Allowed: n(0), Remaining: n(1), RetryMs: n(2), ResetMs: n(3), Limit: n(4) & (1<<pairShift - 1),
		Pair: uint8(n(4)>>pairShift) & 0xf, Part: uint8(n(4)>>(pairShift+4)) & 0xf,
	}
	if n(4) < 0 {
		d.Status, d.Limit = Status(d.Limit), 0
	}
	return d, n(5)
}

func writeToken(state []byte, d *Decision, untilNs int64) {
	limit := d.Limit | int64(d.Pair)<<pairShift | int64(d.Part)<<(pairShift+4)
	if d.Status != OK {
		limit |= int64(d.Status) | -1<<63
	}
	for i, n := range [...]int64{d.Allowed, d.Remaining, d.RetryMs, d.ResetMs, limit, untilNs} {
		le.PutUint64(state[i*8:], uint64(n))
	}
}
