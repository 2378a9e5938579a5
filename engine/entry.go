package engine

// An entry is one slot of a slab:
//
//	head(2) limit(3) next(4) prev(4) key state
//
// head is the kind, flags and the key's length. limit is a number in the shard's limit
// table, next and prev are the entry's neighbours in the wheel, and the state's length
// follows from kind and flags. All are as short as they can be: a bucket with a key of 15
// bytes takes 40, and memory is what a table of many keys costs.
const (
	entryHead = 13
	entryMin  = 8 * markWords // no two entries share a mark

	kindBits    = 4
	flagStored  = 1 << kindBits   // was handed out by Drain or came from Load
	flagLong    = flagStored << 1 // a bucket whose state has all of its bytes
	keyShift    = kindBits + 2
	maxEntryKey = 1<<(16-keyShift) - 1

	limitBits = 24
	limitMask = 1<<limitBits - 1
)

// entryLen is how many bytes an entry takes.
func entryLen(keyLen, stateLen int) int { return max(entryHead+keyLen+stateLen, entryMin) }

// The kind of an entry is its algorithm, or one of these.
const (
	kindBlock  = uint8(NoAlgorithm)   // an administrative block: until(8), its sign says everywhere; reasonLen(1) reason
	kindToken  = uint8(numAlgorithms) // the remembered answer to an ID
	kindHold   = kindToken + 1        // a hold, by its id
	kindClaims = kindToken + 2        // what holds may give back to a limiter
	numKinds   = numAlgorithms + 3
)

// namespace is what a key names: a limiter, its block, the ID of an operation, a hold,
// or the claims on a limiter.
type namespace uint8

const (
	limiters namespace = iota
	blocks
	tokens
	holds
	claims
)

func namespaceOf(kind uint8) namespace {
	switch kind {
	case kindBlock:
		return blocks
	case kindToken:
		return tokens
	case kindHold:
		return holds
	case kindClaims:
		return claims
	}
	return limiters
}

const (
	blockLen = 9 // and the reason
	tokenLen = 48
)

var stateLens = [numKinds]int{
	kindBlock: blockLen, TokenBucket: shortBucketLen, LeakyBucket: shortBucketLen, FixedWindow: 16, SlidingLog: logLen,
	SlidingCounter: 24, Concurrency: leasesLen, Strike: logLen + 8, Counter: 16, Scripted: scriptRecordLen, kindToken: tokenLen,
	kindHold: holdHead, kindClaims: leasesLen,
}

// entry is a view of an entry's bytes.
type entry []byte

func (e entry) kind() uint8        { return e[0] & (1<<kindBits - 1) }
func (e entry) has(flag byte) bool { return e[0]&flag != 0 }
func (e entry) set(flag byte)      { e[0] |= flag }
func (e entry) unset(flag byte)    { e[0] &^= flag }
func (e entry) keyLen() int        { return int(le.Uint16(e) >> keyShift) }
func (e entry) limit() uint32      { return le.Uint32(e[2:]) & limitMask }
func (e entry) next() ref          { return le.Uint32(e[5:]) }
func (e entry) prev() ref          { return le.Uint32(e[9:]) }
func (e entry) key() []byte        { return e[entryHead : entryHead+e.keyLen()] }
func (e entry) setLimit(id uint32) { le.PutUint32(e[2:], le.Uint32(e[2:])&^limitMask|id) }
func (e entry) setNext(r ref)      { le.PutUint32(e[5:], r) }
func (e entry) setPrev(r ref)      { le.PutUint32(e[9:], r) }
func (e entry) state() []byte      { return e[entryHead+e.keyLen():] }

// stateLen is the length of the state, of blocks and holds without what follows it.
func (e entry) stateLen() int {
	if e.has(flagLong) {
		return longBucketLen
	}
	return stateLens[e.kind()]
}

// logState is the part of the state that is a log; nil if the entry has none.
func (e entry) logState() []byte {
	switch e.kind() {
	case uint8(SlidingLog), uint8(Strike):
		return e.state()
	case uint8(Scripted):
		if st := e.state(); isLog(st) {
			return st[scriptLogAt:]
		}
	}
	return nil
}

func (e entry) is(ns namespace, key []byte) bool {
	return namespaceOf(e.kind()) == ns && string(e.key()) == string(key)
}

// init writes a new entry without links or limit and with a zero state.
func (e entry) init(kind uint8, key []byte, stateLen int) {
	if len(key) > maxEntryKey {
		panic("engine: a key longer than entries have")
	}
	le.PutUint16(e, uint16(kind)|uint16(len(key))<<keyShift)
	clear(e[2:entryHead])
	copy(e[entryHead:], key)
	if stateLen == longBucketLen && isBucket(kind) {
		e.set(flagLong)
	}
	clear(e.state()[:stateLen])
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
