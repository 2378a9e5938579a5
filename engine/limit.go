package engine

import (
	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/rule"
)

// Never is the instant that never comes.
const Never = arith.Never

// The types of limits. Package rule documents each of them.
type (
	Algorithm  = rule.Algorithm
	Rate       = rule.Rate
	WindowMode = rule.WindowMode
	StrikeMode = rule.StrikeMode
	Limit      = rule.Limit
	Steps      = rule.Steps
	Step       = rule.Step
)

// The algorithms. A key belongs to one of them while it is not idle.
const (
	NoAlgorithm    = rule.NoAlgorithm
	TokenBucket    = rule.TokenBucket
	LeakyBucket    = rule.LeakyBucket
	FixedWindow    = rule.FixedWindow
	SlidingLog     = rule.SlidingLog
	SlidingCounter = rule.SlidingCounter
	Concurrency    = rule.Concurrency
	Strike         = rule.Strike
	Counter        = rule.Counter
	Scripted       = rule.Scripted
)

// The window modes.
const (
	Aligned   = rule.Aligned
	FromFirst = rule.FromFirst
	Day       = rule.Day
	Week      = rule.Week
	Month     = rule.Month
	Year      = rule.Year
	Forever   = rule.Forever
)

// The bits of a StrikeMode.
const (
	Attempts = rule.Attempts
	Extend   = rule.Extend
)

// The bounds of arguments.
const (
	MinGivenNs   = rule.MinGivenNs
	MaxUnits     = rule.MaxUnits
	MaxWindowNs  = rule.MaxWindowNs
	MaxLogUnits  = rule.MaxLogUnits
	MaxKeyLen    = rule.MaxKeyLen
	MaxIDLen     = rule.MaxIDLen
	MaxHolderLen = rule.MaxHolderLen
	MaxHolders   = rule.MaxHolders

	MaxAllocations = rule.MaxAllocations
	MaxReasonLen   = rule.MaxReasonLen
	MaxSteps       = rule.MaxSteps
	MaxPolicyLen   = rule.MaxPolicyLen
)

// The errors of ParseDuration.
var (
	ErrDuration = rule.ErrDuration
	ErrTooLong  = rule.ErrTooLong
)

// MakeSteps packs 1..MaxSteps steps. Their thresholds ascend strictly.
func MakeSteps(steps []Step) Steps { return rule.MakeSteps(steps) }

// MakeRate returns units per periods of periodNs nanoseconds each, in lowest terms.
func MakeRate(units, periods, periodNs int64) (Rate, error) {
	return rule.MakeRate(units, arith.Mul(uint64(periods), uint64(periodNs)))
}

// ParseRate reads a rate such as 10, 5/m or 1/6s, exactly.
func ParseRate(b []byte) (Rate, error) { return rule.ParseRate(b) }

// ParseDuration reads a duration such as 60, 500ms or 1w in nanoseconds, 0..MaxWindowNs.
func ParseDuration(b []byte) (int64, error) { return rule.ParseDuration(b) }

// FormatDuration formats nanoseconds as ParseDuration reads them.
func FormatDuration(ns int64) string { return rule.FormatDuration(ns) }
