package persistence

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-project/weir/engine"
)

// Clock tells limiter time, which only goes forward and never steps.
type Clock interface {
	// Now is the stamp of a decision taken now.
	Now() engine.Stamp
	// Record is what a restart needs to go on from here; Flush is left zero.
	Record() Record
	// Slew draws the offset to the wall clock nearer to the truth. Called about once
	// a second, by one goroutine.
	Slew()
	// Advance moves a test clock forward by d; false for any other clock.
	Advance(d time.Duration) bool
}

// Source is the hardware below a clock.
type Source interface {
	// MonotonicNs never steps; only differences mean something.
	MonotonicNs() int64
	// WallNs is Unix time. It may step, and be wrong.
	WallNs() int64
}

type systemSource struct{}

func (systemSource) MonotonicNs() int64 { return monotonicNs() }
func (systemSource) WallNs() int64      { return time.Now().UnixNano() }

const (
	// slewDivisor bounds how fast the offset to the wall clock moves: 1/2000, 0.05 %
	// of real time, as adjtime does it. Slow enough that no window is cut or drawn
	// out noticeably, fast enough for any crystal (0.01 %).
	slewDivisor = 2000
	// minLimiterNs and maxLimiterNs keep a first start with a senseless wall clock
	// within what package engine computes with.
	minLimiterNs = int64(time.Second)
	maxLimiterNs = int64(1) << 61
)

// DefaultMaxDowntimeCredit is how much of the time a server was down counts as
// passed when nothing else is said. Callers should get their refill for a night's
// maintenance; a machine that wakes with a wall clock years ahead should not
// empty every weekly and monthly quota.
const DefaultMaxDowntimeCredit = 24 * time.Hour

// DefaultMaxCalendarStep is how far the windows of clock and calendar follow the wall
// clock after a downtime by default. A server that was off for a
// holiday should begin its days at midnight; a machine that wakes in another decade
// should not.
const DefaultMaxCalendarStep = 365 * 24 * time.Hour

// rawClock runs on the monotonic clock alone; the wall clock decides only where
// it starts and where calendar windows lie.
type rawClock struct {
	source  Source
	startNs int64 // limiter time at the start
	rawNs   int64 // Source.MonotonicNs at the start
	offset  atomic.Pointer[slew]
}

// slew is an offset on its way: it moves from FromNs by ByNs in all, starting at
// limiter time sinceNs, at 1/slewDivisor of limiter time. Being continuous it
// keeps the wall time of calendar windows from going back.
type slew struct{ sinceNs, fromNs, byNs int64 }

func (s *slew) at(nowNs int64) int64 {
	step := max(nowNs-s.sinceNs, 0) / slewDivisor
	return s.fromNs + min(max(s.byNs, -step), step)
}

// newRawClock starts a clock. last is the record of the flush before, nil on a
// first start, when limiter time is the wall clock. Later it goes on from the
// record; see Downtime.Resume.
func newRawClock(source Source, last *Record, most Downtime) *rawClock {
	c := &rawClock{source: source, rawNs: source.MonotonicNs()}
	wallNs := source.WallNs()
	c.startNs = min(max(wallNs, minLimiterNs), maxLimiterNs)
	at := engine.Stamp{NowNs: c.startNs, WallOffsetNs: wallNs - c.startNs}
	if last != nil {
		at, _ = last.resume(wallNs, most)
	}
	c.startNs = at.NowNs
	c.offset.Store(&slew{sinceNs: c.startNs, fromNs: at.WallOffsetNs})
	return c
}

// resume applies Downtime.Resume to a record when the wall clock shows wallNs.
func (r *Record) resume(wallNs int64, most Downtime) (engine.Stamp, time.Duration) {
	return most.Resume(engine.Stamp{NowNs: r.LimiterNs, WallOffsetNs: r.OffsetNs}, wallNs-r.WallNs, wallNs)
}

// Downtime bounds how far time may go forward after a downtime.
type Downtime struct {
	Credit time.Duration // of limiter time: refills
	Step   time.Duration // of the wall time of windows
}

// Resume is the rule by which time goes on after a downtime of a server or of a whole
// cluster. last is the last stamp before the downtime, passedNs the time since then by the
// wall clock, and wallNs the wall clock. Limiter time and the wall time of windows go
// forward only, each within its bound. cut is how far the bound leaves the windows behind
// the wall clock.
func (d Downtime) Resume(last engine.Stamp, passedNs, wallNs int64) (at engine.Stamp, cut time.Duration) {
	creditNs, stepNs := min(max(int64(d.Credit), 0), maxLimiterNs), min(max(int64(d.Step), 0), maxLimiterNs)
	lastWallNs := last.NowNs + last.WallOffsetNs
	goesOnNs := min(max(wallNs, lastWallNs), lastWallNs+stepNs)
	at.NowNs = last.NowNs + min(max(passedNs, 0), creditNs)
	at.WallOffsetNs = goesOnNs - at.NowNs
	return at, time.Duration(max(wallNs-goesOnNs, 0))
}

// CutAdvice is the log message for when Resume leaves windows behind the wall clock.
const CutAdvice = "the wall clock went further than --max-calendar-step while nothing ran; windows of clock and calendar are behind it. " +
	"If the wall clock is right, restart with a longer --max-calendar-step; if it is wrong, correct it"

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

// StartClock starts a clock at exactly the given stamp: a replicated node goes on
// from the last stamp it applied, however long ago that was. From then on it runs
// on source's monotonic clock alone; the wall clock only draws the offset, by way
// of Slew, at most 1/2000 of the time that passes. at.NowNs must be positive.
func StartClock(source Source, at engine.Stamp) Clock {
	c := &rawClock{source: source, rawNs: source.MonotonicNs(), startNs: at.NowNs}
	c.offset.Store(&slew{sinceNs: at.NowNs, fromNs: at.WallOffsetNs})
	return c
}

// SystemSource is the hardware of this machine.
func SystemSource() Source { return systemSource{} }

func (c *rawClock) Advance(time.Duration) bool { return false }

// testClock stands still until it is told to advance. Its wall time is its
// limiter time, but for an offset that it was started with.
type testClock struct {
	offsetNs int64
	mu       sync.Mutex
	nowNs    int64
}

// newTestClock starts at the second the wall clock shows, or goes on from the
// record of the flush before.
func newTestClock(source Source, last *Record) *testClock {
	if last != nil {
		return &testClock{nowNs: last.LimiterNs}
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

// Advance ignores a negative d: limiter time never goes back.
func (c *testClock) Advance(d time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nowNs += max(min(int64(d), maxLimiterNs-c.nowNs), 0)
	return true
}
