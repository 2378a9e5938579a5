package servertest

import (
	"bytes"
	"sync"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/engine/hashslot"
)

// TestNowNs and TestWallNs are the start of test clocks: 2026-11-21 12:00:00 UTC, the middle of a day, on the wall
// clock.
const (
	TestNowNs  = int64(1_000_000_000_000_000)
	TestWallNs = int64(1_795_262_400) * 1e9
)

// TableLimiter decides with a real table at a fixed time.
type TableLimiter struct {
	Table *engine.Table

	Mu      sync.Mutex
	Stamp   engine.Stamp
	Real    bool  // Advance is refused
	Err     error // the result instead of a decision
	SaveErr error
	saved   time.Time
	Calls   int
}

func NewTableLimiter() *TableLimiter {
	return &TableLimiter{
		Table: engine.NewTable(engine.Options{Shards: 8}),
		Stamp: engine.Stamp{NowNs: TestNowNs, WallOffsetNs: TestWallNs - TestNowNs},
	}
}

func (l *TableLimiter) Now() engine.Stamp {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	return l.Stamp
}

func (l *TableLimiter) count() error {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	l.Calls++
	return l.Err
}

func (l *TableLimiter) Decide(ops []engine.Op, out []engine.Decision) error {
	if err := l.count(); err != nil {
		return err
	}
	l.Table.Decide(l.Now(), ops, out)
	return nil
}

func (l *TableLimiter) DecideAtomic(ops []engine.Op, out []engine.Decision) error {
	if err := l.count(); err != nil {
		return err
	}
	l.Table.DecideAtomic(l.Now(), ops, out)
	return nil
}

func (l *TableLimiter) Inspect(key []byte) (engine.Info, bool) { return l.Table.Inspect(l.Now(), key) }
func (l *TableLimiter) Len(database int) int64 {
	return l.Table.LenWithin(l.Now(), database, hashslot.All)
}
func (l *TableLimiter) RandomKey(database int) []byte { return l.Table.RandomKey(l.Now(), 7, database) }

// ClearDatabase empties a database; see engine.Flush.
func (l *TableLimiter) ClearDatabase(database int) error {
	if err := l.count(); err != nil {
		return err
	}
	l.Table.Decide(l.Now(), []engine.Op{engine.Flush(database, 0)}, make([]engine.Decision, 1))
	return nil
}
func (l *TableLimiter) Holds(policy, key []byte, cursor uint64, count int) ([]engine.OpenHold, uint64) {
	return l.Table.Holds(l.Now(), policy, key, cursor, count)
}
func (l *TableLimiter) BlocksEverywhere() engine.BlocksEverywhere {
	return l.Table.BlocksEverywhere(l.Now())
}
func (l *TableLimiter) FromBlock(key []byte) engine.FromBlock      { return l.Table.FromBlock(l.Now(), key) }
func (l *TableLimiter) Top(v engine.Verdict, n int) []engine.Heavy { return l.Table.Top(l.Now(), v, n) }
func (l *TableLimiter) Policies() *engine.Policies                 { return l.Table.Policies() }
func (l *TableLimiter) Stats() engine.Stats                        { return l.Table.Stats(l.Now()) }
func (l *TableLimiter) Clear() error                               { l.Table.Clear(); return nil }

// LastSave returns when Save last succeeded.
func (l *TableLimiter) LastSave() time.Time {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	return l.saved
}

// Events reads the log of events; see engine.Table.Events.
func (l *TableLimiter) Events(_ int, after uint64, n int) ([]engine.Event, engine.EventsPosition, <-chan struct{}) {
	return l.Table.Events(after, n)
}

// EventsBefore returns the cursor of the newest event before a time; see engine.Table.EventsBefore.
func (l *TableLimiter) EventsBefore(_ int, atMs int64) uint64 { return l.Table.EventsBefore(atMs) }

func (l *TableLimiter) Scan(cursor uint64, count int, visit func([]byte, engine.Algorithm)) uint64 {
	return l.Table.Scan(l.Now(), cursor, count, visit)
}

func (l *TableLimiter) Save() error {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if l.SaveErr == nil {
		l.saved = time.Unix(1_800_000_000, 0)
	}
	return l.SaveErr
}

func (l *TableLimiter) Advance(d time.Duration) bool {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if !l.Real {
		l.Stamp.NowNs += int64(d)
	}
	return !l.Real
}

// LockedBuffer is a log that may be read while it is written.
type LockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *LockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *LockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
