package store

import (
	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/rule"
)

// The deficit of a bucket is the missing tokens of a token bucket, or the backlog of a leaky
// bucket. It drains at the rate of the limit. The deficit is counted in 1/Rate.PerNs units, so
// a nanosecond drains exactly Rate.Units of it. The state of a bucket is the instant at which
// the deficit is gone, in 1/Rate.Units nanoseconds. So neither a cost nor the passing of time
// needs a division, and nothing is rounded before the reply.
//
// For most limits 96 bits are enough for that instant. For a limit that may need more, the
// state has all 128 bits. The bytes are little-endian.
const (
	ShortBucketLen = 12
	LongBucketLen  = 16
)

// IsBucket reports whether a kind of entry is a bucket.
func IsBucket(kind uint8) bool {
	return kind == uint8(rule.TokenBucket) || kind == uint8(rule.LeakyBucket)
}

// BucketLen returns the length of the state of buckets under a limit.
func BucketLen(l *rule.Limit) int {
	// The largest deficit is below 2^95, and so is the time in 1/Rate.Units nanoseconds.
	if l.Rate.Units < 1<<32 && l.MostMissing().Hi < 1<<31 {
		return ShortBucketLen
	}
	return LongBucketLen
}

// LimitStateLen returns the length of the state of limiters under a limit.
func LimitStateLen(l *rule.Limit) int {
	if IsBucket(uint8(l.Algorithm)) {
		return BucketLen(l)
	}
	return StateLens[l.Algorithm]
}

// BucketOf returns the state of a bucket: the instant at which its deficit is gone.
func BucketOf(e Entry) (goneAt arith.Uint128) {
	st := e.State()
	goneAt = arith.Uint128{Hi: uint64(le.Uint32(st[8:])), Lo: le.Uint64(st)}
	if e.has(flagLong) {
		goneAt.Hi |= uint64(le.Uint32(st[ShortBucketLen:])) << 32
	}
	return goneAt
}

// SetBucket stores the instant at which the deficit of a bucket is gone.
func SetBucket(e Entry, goneAt arith.Uint128) {
	st := e.State()
	le.PutUint64(st, goneAt.Lo)
	le.PutUint32(st[8:], uint32(goneAt.Hi))
	if e.has(flagLong) {
		le.PutUint32(st[ShortBucketLen:], uint32(goneAt.Hi>>32))
	} else if goneAt.Hi>>32 != 0 {
		panic("engine: a bucket's state is longer than its limit allows")
	}
}

// readWide and writeWide read and write a number in the form that allocations and stored values use.
func readWide(b []byte) arith.Uint128 { return arith.Uint128{Hi: le.Uint64(b), Lo: le.Uint64(b[8:])} }

func writeWide(b []byte, n arith.Uint128) {
	le.PutUint64(b, n.Hi)
	le.PutUint64(b[8:], n.Lo)
}

// DeficitAt returns the deficit of a bucket at a time.
func DeficitAt(goneAt arith.Uint128, r rule.Rate, nowNs int64) arith.Uint128 {
	return goneAt.SubFloor(arith.Mul(uint64(nowNs), uint64(r.Units)))
}

// GoneAt returns the state of a bucket with a deficit at a time.
func GoneAt(deficit arith.Uint128, r rule.Rate, nowNs int64) arith.Uint128 {
	return deficit.Add(arith.Mul(uint64(nowNs), uint64(r.Units)))
}
