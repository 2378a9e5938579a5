package persistence

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-project/weir/engine"
)

// Clock provides limiter time, which never goes back and never steps. Its methods may be called from many goroutines.
type Clock interface {
	// Now returns the stamp of a decision made now.
	Now() engine.Stamp
	// Record returns the clock record from which a restart continues. Flush is zero.
	Record() Record
	// Slew corrects the offset between limiter time and the wall time of calendar windows, slowly, towards the wall
	// clock. One goroutine calls it about once a second.
	Slew()
	// Advance moves a test clock forward by d. It returns false for any other clock.
	Advance(d time.Duration) bool
}

// Source provides the hardware clocks below a Clock.
type Source interface {
	// MonotonicNs never steps. Only differences of its values have a meaning.
	MonotonicNs() int64
	// WallNs returns Unix time. It may step and may be wrong.
	WallNs() int64
}

// systemSource is the Source of this machine. Its MonotonicNs depends on the operating system.
type systemSource struct{}

// WallNs reads the clock of the operating system.
func (systemSource) WallNs() int64 { return time.Now().UnixNano() }

const (
	// slewDivisor bounds how fast the offset changes: by 1/2000, 0.05 %, of the elapsed time, as with adjtime. That
	// changes the length of no window noticeably, and is still faster than the error of any crystal (0.01 %).
	slewDivisor = 2000
	// minLimiterNs and maxLimiterNs keep limiter time in the range of package engine, even if the wall clock is wrong
	// at the first start.
	minLimiterNs = int64(time.Second)
	maxLimiterNs = int64(1) << 61
)

// DefaultMaxCalendarStep is the default bound on how far calendar windows follow the wall clock after a downtime. A
// server that was off for a holiday should begin its days at midnight. A machine whose wall clock is wrong by a decade
// should not.
const DefaultMaxCalendarStep = 365 * 24 * time.Hour

// rawClock runs on the monotonic clock. The wall clock determines only the first limiter time and the position of
// calendar windows.
type rawClock struct {
	source  Source
	startNs int64 // limiter time at the start
	rawNs   int64 // Source.MonotonicNs at the start
	offset  atomic.Pointer[slew]
}

// slew is an offset that changes over time. It starts with fromNs at limiter time sinceNs, and changes by byNs in
// total, by 1 ns in slewDivisor nanoseconds of limiter time. It never steps, so the wall time of calendar windows never
// goes back.
type slew struct{ sinceNs, fromNs, byNs int64 }

func (s *slew) at(nowNs int64) int64 {
	step := max(nowNs-s.sinceNs, 0) / slewDivisor
	return s.fromNs + min(max(s.byNs, -step), step)
}

// newRawClock starts a clock. last is the record of the previous flush, or nil at the first start. With a record,
// limiter time continues from the record, within the bounds most (see Downtime.Resume). Without a record, limiter time
// begins at the wall clock.
func newRawClock(source Source, last *Record, most Downtime) Clock {
	wallNs := source.WallNs()
	at := engine.Stamp{NowNs: min(max(wallNs, minLimiterNs), maxLimiterNs)}
	at.WallOffsetNs = wallNs - at.NowNs
	if last != nil {
		at, _ = last.resume(wallNs, most)
	}
	return StartClock(source, at)
}

// resume applies Downtime.Resume to a record, with the wall clock at wallNs.
func (r *Record) resume(wallNs int64, most Downtime) (engine.Stamp, time.Duration) {
	return most.Resume(engine.Stamp{NowNs: r.LimiterNs, WallOffsetNs: r.OffsetNs}, wallNs-r.WallNs, wallNs)
}

// Downtime bounds how far time advances after a downtime.
type Downtime struct {
	Credit time.Duration // bound for limiter time, and so for refills
	Step   time.Duration // bound for the wall time of calendar windows
}

// Resume computes the stamp after a downtime of a server or of a whole cluster. last is the last stamp before the
// downtime, passedNs the time since then by the wall clock, and wallNs the wall clock now. Limiter time and the wall
// time of calendar windows only advance, each within its bound. cut is how far the calendar windows stay behind the
// wall clock because of the bound Step.
func (d Downtime) Resume(last engine.Stamp, passedNs, wallNs int64) (at engine.Stamp, cut time.Duration) {
	creditNs, stepNs := min(max(int64(d.Credit), 0), maxLimiterNs), min(max(int64(d.Step), 0), maxLimiterNs)
	lastWallNs := last.NowNs + last.WallOffsetNs
	goesOnNs := min(max(wallNs, lastWallNs), lastWallNs+stepNs)
	at.NowNs = last.NowNs + min(max(passedNs, 0), creditNs)
	at.WallOffsetNs = goesOnNs - at.NowNs
	return at, time.Duration(max(wallNs-goesOnNs, 0))
}

// CutAdvice is the log message for a Resume that leaves windows behind the wall clock.
const CutAdvice = "the wall clock advanced by more than --max-calendar-step while the server was down, so windows of " +
	"clock and calendar are behind it. If the wall clock is right, restart with a longer --max-calendar-step; if it " +
	"is " +
	"wrong, correct it"

func (c *rawClock) Now() engine.Stamp {
	now := c.startNs + c.source.MonotonicNs() - c.rawNs
	return engine.Stamp{NowNs: now, WallOffsetNs: c.offset.Load().at(now)}
}

func (c *rawClock) Record() Record {
	at := c.Now()
	return Record{LimiterNs: at.NowNs, OffsetNs: at.WallOffsetNs, WallNs: c.source.WallNs()}
}

func (c *rawClock) Slew() {
	at := c.Now()
	target := c.source.WallNs() - at.NowNs
	c.offset.Store(&slew{sinceNs: at.NowNs, fromNs: at.WallOffsetNs, byNs: target - at.WallOffsetNs})
}

// StartClock starts a clock at exactly the given stamp. A replicated node continues from the last stamp that it
// applied, even if that is old. The clock then runs on the monotonic clock of source. The wall clock only moves the
// offset, in Slew, by at most 1/2000 of the elapsed time. at.NowNs must be positive.
func StartClock(source Source, at engine.Stamp) Clock {
	c := &rawClock{source: source, rawNs: source.MonotonicNs(), startNs: at.NowNs}
	c.offset.Store(&slew{sinceNs: at.NowNs, fromNs: at.WallOffsetNs})
	return c
}

// SystemSource returns the clocks of this machine.
func SystemSource() Source { return systemSource{} }

func (c *rawClock) Advance(time.Duration) bool { return false }

// testClock stands still until Advance. Its wall time is its limiter time plus a constant offset.
type testClock struct {
	offsetNs int64
	mu       sync.Mutex
	nowNs    int64
}

// newTestClock starts at the current second of the wall clock, or continues from the record of the previous flush.
func newTestClock(source Source, last *Record) *testClock {
	if last != nil {
		return &testClock{nowNs: last.LimiterNs, offsetNs: last.OffsetNs}
	}
	seconds := source.WallNs() / int64(time.Second)
	return &testClock{nowNs: min(max(seconds*int64(time.Second), minLimiterNs), maxLimiterNs)}
}

// StartTestClock starts a clock that stands still at the given stamp until Advance.
func StartTestClock(at engine.Stamp) Clock {
	return &testClock{nowNs: at.NowNs, offsetNs: at.WallOffsetNs}
}

func (c *testClock) Now() engine.Stamp {
	c.mu.Lock()
	defer c.mu.Unlock()
	return engine.Stamp{NowNs: c.nowNs, WallOffsetNs: c.offsetNs}
}

func (c *testClock) Record() Record {
	at := c.Now()
	return Record{LimiterNs: at.NowNs, OffsetNs: at.WallOffsetNs, WallNs: at.NowNs + at.WallOffsetNs, Test: true}
}

func (c *testClock) Slew() {}

// Advance ignores a negative d, because limiter time never goes back.
func (c *testClock) Advance(d time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nowNs += max(min(int64(d), maxLimiterNs-c.nowNs), 0)
	return true
}
