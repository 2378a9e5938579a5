package engine

import (
	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/script"
)

// The types of scripts. Package script documents each of them.
type (
	Script     = script.Call
	ScriptID   = script.ID
	HashField  = script.HashField
	HashFields = script.HashFields
)

// The scripts that OpScript carries out.
const (
	NoScript             = script.None
	RedisRateAllowN      = script.RedisRateAllowN
	RedisRateAllowAtMost = script.RedisRateAllowAtMost
	CountGet             = script.CountGet
	CountSet             = script.CountSet
	CountAdd             = script.CountAdd
	CountExpire          = script.CountExpire
	FlexibleConsume      = script.FlexibleConsume
	ExpressHit           = script.ExpressHit
	ExpressHitReset      = script.ExpressHitReset
	ExpressCount         = script.ExpressCount
	ExpressCountZero     = script.ExpressCountZero
	FastifyHit           = script.FastifyHit
	FastifyHitTTL        = script.FastifyHitTTL
	FastifyHitBan        = script.FastifyHitBan
	FastifyRead          = script.FastifyRead
	UluleIncr            = script.UluleIncr
	UlulePeek            = script.UlulePeek
	LimitsIncr           = script.LimitsIncr
	FastapiHit           = script.FastapiHit
	ZeroPeriod           = script.ZeroPeriod
	ZeroToken            = script.ZeroToken
	SpringTake           = script.SpringTake
	NestHit              = script.NestHit
	LimitsSlide          = script.LimitsSlide
	LimitsLook           = script.LimitsLook
	RedisGCRA            = script.RedisGCRA
	TextSet              = script.TextSet
	TextLook             = script.TextLook
	TextTake             = script.TextTake
	TextTouch            = script.TextTouch
	TextExpire           = script.TextExpire
	TextAppend           = script.TextAppend
	TextSwap             = script.TextSwap
	TextDrop             = script.TextDrop
	TextAdd              = script.TextAdd
	TextSwapLive         = script.TextSwapLive
	GatewayTake          = script.GatewayTake
	MarketTake           = script.MarketTake
	SlidingSet           = script.SlidingSet
	MovingTake           = script.MovingTake
	MovingLook           = script.MovingLook
	MovingCount          = script.MovingCount
	AsyncTake            = script.AsyncTake
	UpstashSlide         = script.UpstashSlide
	UpstashSlideLook     = script.UpstashSlideLook
	UpstashTake          = script.UpstashTake
	UpstashLook          = script.UpstashLook
	DurationTake         = script.DurationTake
	DurationLook         = script.DurationLook
	TraefikTake          = script.TraefikTake

	NumScripts = script.NumIDs
)

// The options of scripts on strings, as bits of a sum.
const (
	TextIfAbsent   = script.TextIfAbsent
	TextIfPresent  = script.TextIfPresent
	TextKeepExpiry = script.TextKeepExpiry
	TextExpireMs   = script.TextExpireMs
	TextPersist    = script.TextPersist
	TextGetOld     = script.TextGetOld
	TextIfNoExpiry = script.TextIfNoExpiry
	TextIfExpiry   = script.TextIfExpiry
	TextIfLater    = script.TextIfLater
	TextIfSooner   = script.TextIfSooner
)

// The bounds of scripts.
const (
	MaxScriptArgs   = script.MaxArgs
	MaxValueBytes   = script.MaxValueBytes
	MaxSlidingSetMs = script.MaxSlidingSetMs
	MaxHits         = script.MaxHits
)

// Truncate converts a double to the integer that Redis answers for it.
func Truncate(f float64) int64 { return arith.Truncate(f) }

// BucketTTLSeconds returns how long a bucket of go-zero or Spring is kept after a request.
func BucketTTLSeconds(rate, capacity float64) float64 { return script.BucketTTLSeconds(rate, capacity) }

// MarketTTLSeconds returns how long a bucket of the script MarketTake is kept after a request.
func MarketTTLSeconds(capacity, ratePerS float64) float64 {
	return script.MarketTTLSeconds(capacity, ratePerS)
}

// GCRABurstMs returns the time that a full burst of redis-gcra spans, in milliseconds.
func GCRABurstMs(burst, rate, periodMs float64) float64 {
	return script.GCRABurstMs(burst, rate, periodMs)
}
