package engine

// Algorithm names the rule a limiter follows.
type Algorithm uint8

// The algorithms. A key belongs to one of them while it is not idle.
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
	Scripted // what a script of another library keeps, for OpScript
	numAlgorithms
)

var algorithmNames = [numAlgorithms]string{
	"none", "tokenbucket", "leakybucket", "fixed", "sliding", "slidingcounter",
	"concurrency", "strike", "counter", "scripted",
}

// String returns the algorithm's name as replies and metrics spell it.
func (a Algorithm) String() string {
	if a < numAlgorithms {
		return algorithmNames[a]
	}
	return "unknown"
}

// Rate is a quantity of units per time, exact: Units every PerNs nanoseconds,
// in lowest terms. Units is in 1..MaxUnits, PerNs in 1..MaxWindowNs.
type Rate struct{ Units, PerNs int64 }

// WindowMode says where the windows of FixedWindow begin and end.
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

// Limit is the rule of one decision. It is comparable: two equal limits are the
// same limit. Which fields count depends on the algorithm.
type Limit struct {
	Algorithm Algorithm
	Mode      WindowMode // FixedWindow
	Strikes   StrikeMode // Strike
	Rate      Rate       // TokenBucket, LeakyBucket
	// Max is the burst, the capacity, the maximum or the last threshold: what a
	// decision reports as its limit, in units. 1..MaxUnits; LeakyBucket 0..MaxUnits;
	// SlidingLog and Strike 1..MaxLogUnits.
	Max      int64
	WindowNs int64 // SlidingLog, SlidingCounter, Strike, FixedWindow Aligned and FromFirst: 1..MaxWindowNs
	Steps    Steps // Strike
}

// StrikeMode says what a limit of Strike counts; its bits go together.
type StrikeMode uint8

// The bits of a StrikeMode.
const (
	// Attempts: a take is an attempt that begins, and counts as a failure until OpForgive or
	// OpReset says that it succeeded. It is admitted unless a penalty runs, also when it reaches
	// a threshold: the penalty holds for all behind it. So no more attempts run than the last
	// threshold says, however many begin at once.
	Attempts StrikeMode = 1 << iota
	// Extend: a take during a penalty is denied and counts all the same, and begins the
	// penalty of the highest step reached anew.
	Extend
	numStrikeModes = iota

	strikesShift = 4 // where the bits are in a limit's stored form, above those of Mode
)

// ValidFor reports whether limits of an algorithm may have the mode.
func (m StrikeMode) ValidFor(a Algorithm) bool {
	return m == 0 || a == Strike && m>>numStrikeModes == 0
}

// is reports whether two limits are the same, as == does, without a call for those that
// have no steps.
func (l *Limit) is(other *Limit) bool {
	return l.Max == other.Max && l.Rate == other.Rate && l.WindowNs == other.WindowNs &&
		l.Algorithm == other.Algorithm && l.Mode == other.Mode && l.Strikes == other.Strikes && l.Steps == other.Steps
}

// Steps is a strike limit's list of (threshold, penalty) pairs in a comparable
// form; MakeSteps builds it.
type Steps string

// Step is one rung of a strike limit. When the strikes in the window reach Threshold, the key
// is blocked for PenaltyNs. A Delay blocks nobody: whoever strikes from the threshold on, until
// that of the next Delay, is to hold the response for PenaltyNs.
type Step struct {
	Threshold int64 // units, 1..MaxLogUnits
	PenaltyNs int64 // 1..MaxWindowNs
	Delay     bool
}

// delayBit of a packed penalty says that it is a delay. Versions that do not know it find a
// penalty below zero, which they refuse.
const delayBit = 1 << 63

// MakeSteps packs steps, which must be 1..MaxSteps in number and strictly
// ascending by threshold (the caller has checked).
func MakeSteps(steps []Step) Steps {
	b := make([]byte, 0, len(steps)*stepLen)
	for _, s := range steps {
		penalty := uint64(s.PenaltyNs)
		if s.Delay {
			penalty |= delayBit
		}
		b = le.AppendUint64(b, uint64(s.Threshold))
		b = le.AppendUint64(b, penalty)
	}
	return Steps(b)
}

const stepLen = 16

// Len returns the number of steps.
func (s Steps) Len() int { return len(s) / stepLen }

// At returns step i.
func (s Steps) At(i int) Step {
	b := []byte(s[i*stepLen : (i+1)*stepLen])
	penalty := le.Uint64(b[8:])
	return Step{Threshold: int64(le.Uint64(b)), PenaltyNs: int64(penalty &^ delayBit), Delay: penalty&delayBit != 0}
}

// Delays reports whether one of the steps is a delay.
func (s Steps) Delays() bool {
	for i := range s.Len() {
		if s.At(i).Delay {
			return true
		}
	}
	return false
}
