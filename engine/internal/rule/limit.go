package rule

import "github.com/weir-project/weir/engine/internal/arith"

// Algorithm is the algorithm of a limiter.
type Algorithm uint8

// The algorithms. A key that is not idle belongs to exactly one of them.
const (
	NoAlgorithm Algorithm = iota
	TokenBucket
	LeakyBucket
	FixedWindow
	SlidingLog
	SlidingCounter
	Concurrency
	Strike
	Counter  // a plain counter with bounds and a time to live, for INCREX
	Scripted // the state of another library's script, for OpScript
	NumAlgorithms
)

var algorithmNames = [NumAlgorithms]string{
	"none", "tokenbucket", "leakybucket", "fixed", "sliding", "slidingcounter",
	"concurrency", "strike", "counter", "scripted",
}

// String returns the algorithm's name as replies and metrics spell it.
func (a Algorithm) String() string {
	if a < NumAlgorithms {
		return algorithmNames[a]
	}
	return "unknown"
}

// Rate is an exact quantity of units per time: Units every PerNs nanoseconds, in lowest terms. Units is in
// 1..MaxUnits, PerNs in 1..MaxWindowNs.
type Rate struct{ Units, PerNs int64 }

// Grains converts units to the unit of a bucket's deficit, which is 1/PerNs.
func (r Rate) Grains(units int64) arith.Uint128 { return arith.Mul(uint64(units), uint64(r.PerNs)) }

// WindowMode selects where the windows of FixedWindow begin and end.
type WindowMode uint8

// The window modes.
const (
	Aligned   WindowMode = iota // to multiples of the window since the epoch, UTC
	FromFirst                   // at the first request
	Day                         // calendar windows: the operation carries their ends
	Week
	Month
	Year
	Forever // one window without end
)

// Calendar reports whether the windows are those of a calendar.
func (m WindowMode) Calendar() bool { return m >= Day && m <= Year }

// Limit is the rule of one decision. It is comparable: two equal limits are the same limit. Which
// fields have a meaning depends on the algorithm.
type Limit struct {
	Algorithm Algorithm
	Mode      WindowMode // FixedWindow
	Strikes   StrikeMode // Strike
	Rate      Rate       // TokenBucket, LeakyBucket
	// Max is the limit that a decision reports, in units: the burst, the capacity, the maximum or the last threshold.
	// See Algorithm.Sizes.
	Max      int64
	WindowNs int64 // SlidingLog, SlidingCounter, Strike, FixedWindow Aligned and FromFirst: 1..MaxWindowNs
	Steps    Steps // Strike
	// Since is when the limit came into force for a key of a policy. It is zero for any other limit.
	Since Moment
}

// Moment is a place in the order of the changes of a policy: a limiter time, and the version of the policy after
// the change. The version is 0 if an override ends by its time to live; such an end precedes the changes of the
// same time.
type Moment struct {
	AtNs    int64
	Version uint64
}

// Before reports whether a moment precedes another.
func (m Moment) Before(other Moment) bool {
	return m.AtNs < other.AtNs || m.AtNs == other.AtNs && m.Version < other.Version
}

// Later returns the later of two moments.
func (m Moment) Later(other Moment) Moment {
	if m.Before(other) {
		return other
	}
	return m
}

// StrikeMode is a set of bits that select what a limit of Strike counts.
type StrikeMode uint8

// The bits of a StrikeMode.
const (
	// Attempts: a take is the start of an attempt, and counts as a failure until OpForgive or OpReset reports
	// success. A take is admitted unless a penalty runs. A take that reaches a threshold is still admitted, and the
	// penalty applies to all later takes. So the last threshold bounds the concurrent attempts.
	Attempts StrikeMode = 1 << iota
	// Extend makes a take during a penalty count although it is denied. Such a take restarts the penalty of the
	// highest step that the count has reached.
	Extend
	numStrikeModes = iota

	strikesShift = 4 // the position of the bits in a limit's stored form, above those of Mode
)

// ValidFor reports whether limits of an algorithm may have the mode.
func (m StrikeMode) ValidFor(a Algorithm) bool {
	return m == 0 || a == Strike && m>>numStrikeModes == 0
}

// Sizes returns the least and the largest Max of a limit that clients may give.
func (a Algorithm) Sizes() (least, most int64) {
	switch a {
	case LeakyBucket:
		return 0, MaxUnits
	case SlidingLog, Strike:
		return 1, MaxLogUnits
	}
	return 1, MaxUnits
}

// Valid reports whether the arithmetic of a decision is exact under the limit. Max may be outside of Sizes.
func (l *Limit) Valid() bool {
	within := func(v, most int64) bool { return 0 <= v && v <= most }
	if !within(l.Rate.Units, MaxUnits) || !within(l.Rate.PerNs, MaxWindowNs) || !within(l.Max, MaxUnits) ||
		!within(l.WindowNs, MaxWindowNs) || l.Mode > Forever || !l.Strikes.ValidFor(l.Algorithm) {
		return false
	}
	switch l.Algorithm {
	case TokenBucket, LeakyBucket:
		return l.Rate.Units > 0 && l.Rate.PerNs > 0
	case SlidingLog, SlidingCounter:
		return l.WindowNs > 0
	case FixedWindow:
		return l.WindowNs > 0 || l.Mode >= Day
	case Strike:
		return l.WindowNs > 0 && l.Steps.Valid()
	default:
		return l.Algorithm == Concurrency
	}
}

// Is reports whether two limits are equal. It is faster than == for limits without steps.
func (l *Limit) Is(other *Limit) bool {
	return l.Max == other.Max && l.Rate == other.Rate && l.WindowNs == other.WindowNs && l.Since == other.Since &&
		l.Algorithm == other.Algorithm && l.Mode == other.Mode && l.Strikes == other.Strikes && l.Steps == other.Steps
}

// Previewable reports whether the state of a limiter of the algorithm is only a few numbers. The state after a
// decision can then be computed before anything is taken.
func (a Algorithm) Previewable() bool {
	return a == TokenBucket || a == FixedWindow || a == LeakyBucket || a == SlidingCounter
}
