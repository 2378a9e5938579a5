package script

import (
	"math"
	"strconv"

	"github.com/weir-project/weir/engine/internal/arith"
)

// Three programs keep a token bucket as a hash of two fields: the tokens, and the time of the last refill by the
// program's clock. GatewayTake, the script of an API gateway, writes the tokens in the format of Lua's tostring, which
// rounds them. MarketTake, the script of a marketplace, and TraefikTake, that of a proxy, write them unrounded.

// Log entries and stores contain these numbers and shapes, so they never change.
const (
	GatewayTake ID = 37 // rate a second, capacity, now ms, time to live s
	MarketTake  ID = 38 // capacity, rate a second, now ms, requested
	TraefikTake ID = 59 // rate a µs, capacity, time to live s, now µs, longest wait µs
)

const (
	shapeGateway shapes = 40 // doubles: tokens, lastRefill
	shapeMarket  shapes = 41 // doubles: tokens, last_refill
	shapeTraefik shapes = 45 // doubles: tokens, last
)

// HashField is a field of a hash that a script keeps, as HGETALL shows it.
type HashField struct{ Name, Value string }

// HashFields are the fields of a hash, in the order in which its script first wrote them.
type HashFields []HashField

// Hash returns the fields of a record that is a hash, and no fields for any other record.
func (r *Record) Hash() HashFields {
	tokens, refilled := fromBits(r.words[0]), fromBits(r.words[1])
	switch r.shape {
	case shapeGateway:
		return HashFields{{"tokens", luaText(tokens)}, {"lastRefill", redisText(refilled)}}
	case shapeMarket:
		return HashFields{{"tokens", redisText(tokens)}, {"last_refill", redisText(refilled)}}
	case shapeUpstash:
		return HashFields{{"refilledAt", redisText(refilled)}, {"tokens", redisText(tokens)}}
	case shapeTraefik:
		return HashFields{{"last", redisText(refilled)}, {"tokens", redisText(tokens)}}
	case shapeDuration:
		return r.durationFields()
	}
	return nil
}

// luaText formats a number as Lua's tostring does. redisText formats a number as Redis does when a script passes it to
// a command: with all digits, so that parsing gives the same number.
func luaText(f float64) string   { return strconv.FormatFloat(f, 'g', 14, 64) }
func redisText(f float64) string { return strconv.FormatFloat(f, 'g', 17, 64) }

// hashRefill returns the tokens of a bucket at a time. As in both scripts, a time that goes back reduces the tokens.
func (r *Run) hashRefill(capacity, ratePerS, nowMs float64) float64 {
	tokens, refilledMs := capacity, nowMs
	if r.live {
		tokens, refilledMs = fromBits(r.record.words[0]), fromBits(r.record.words[1])
	}
	tokens += float64((nowMs - refilledMs) / 1000 * ratePerS)
	if tokens < capacity {
		return tokens
	}
	return capacity
}

// keepHash stores tokens and time for a whole number of seconds.
func (r *Run) keepHash(tokens, nowMs, ttlS float64) {
	r.put(toBits(tokens))
	r.record.words[1] = toBits(nowMs)
	r.expireMs(secondsToMs(ttlS))
}

// gatewayTake answers whether it admits, the whole tokens left, and the time at which the bucket is full again, rounded
// up to seconds.
func gatewayTake(r *Run) {
	ratePerS, capacity, nowMs, ttlS := r.arg[0], r.arg[1], r.arg[2], r.arg[3]
	tokens := r.hashRefill(capacity, ratePerS, nowMs)
	if !(tokens > 0) {
		tokens = 0
	}
	if r.Admitted = tokens >= 1; r.Admitted {
		tokens--
	}
	rounded, _ := strconv.ParseFloat(luaText(tokens), 64) // the text of a number can always be parsed
	r.keepHash(rounded, nowMs, ttlS)
	fullS := 0.0
	if missing := capacity - tokens; missing > 0 && ratePerS > 0 {
		fullS = math.Ceil(missing / ratePerS)
	}
	r.answers(arith.OneIf(r.Admitted), arith.Truncate(math.Floor(tokens)), arith.Truncate(nowMs+float64(fullS*1000)))
}

// MarketTTLSeconds returns how long a bucket of MarketTake exists after a request.
func MarketTTLSeconds(capacity, ratePerS float64) float64 {
	return math.Ceil(capacity/ratePerS) + 1
}

// marketTake answers whether it admits, the whole tokens left and 0. A denial answers 0, 0 and the wait in
// milliseconds.
func marketTake(r *Run) {
	capacity, ratePerS, nowMs, requested := r.arg[0], r.arg[1], r.arg[2], r.arg[3]
	tokens := r.hashRefill(capacity, ratePerS, nowMs)
	if r.Admitted = tokens >= requested; r.Admitted {
		tokens -= requested
		r.answers(1, arith.Truncate(math.Floor(tokens)))
	} else {
		r.answers(0, 0, arith.Truncate(math.Ceil(float64((requested-tokens)/ratePerS*1000))))
	}
	r.keepHash(tokens, nowMs, MarketTTLSeconds(capacity, ratePerS))
}

// gatewayBlocked and marketBlocked deny until a block ends, by the clock of the program.
func gatewayBlocked(r *Run, leftMs int64) {
	r.answers(0, 0, arith.Truncate(r.arg[2])+blockedForMs(leftMs))
}

func marketBlocked(r *Run, leftMs int64) { r.answers(0, 0, blockedForMs(leftMs)) }

// traefikTake answers the wait and the tokens left. The tokens are below 0 while requests wait, and a first request
// finds an empty bucket that began to fill in 1970. A request that would wait too long takes no token.
func traefikTake(r *Run) {
	ratePerUs, capacity, nowUs := r.arg[0], r.arg[1], r.arg[3]
	tokens, lastUs, waitUs := 0.0, 0.0, 0.0
	if r.live {
		tokens, lastUs = fromBits(r.record.words[0]), fromBits(r.record.words[1])
	}
	tokens = math.Min(tokens+float64(ratePerUs*(nowUs-math.Min(lastUs, nowUs))), capacity) - 1
	if tokens < 0 {
		waitUs = -tokens / ratePerUs
	}
	if r.Admitted = waitUs <= r.arg[4]; !r.Admitted {
		tokens = math.Min(tokens+1, capacity)
	}
	r.keepHash(tokens, nowUs, r.arg[2])
	r.answers(toBits(waitUs), toBits(tokens))
}

// traefikBlocked answers a wait that is too long.
func traefikBlocked(r *Run, leftMs int64) {
	r.answers(toBits(max(float64(float64(blockedForMs(leftMs))*1000), r.arg[4]+1)), toBits(0))
}
