package policyfile

import (
	"io"
	"log/slog"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/engine/hashslot"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server"
	"github.com/weir-project/weir/server/commands"
)

// frozen is a limiter.Limiter in memory whose time stands still until the caller advances it. It decides in the same
// way as a server that runs alone.
type frozen struct {
	table *engine.Table
	at    engine.Stamp
}

var _ limiter.Limiter = (*frozen)(nil)

func newFrozen(at time.Time) *frozen {
	return &frozen{engine.NewTable(engine.Options{}), engine.Stamp{NowNs: at.UnixNano()}}
}

// goTo lets time pass. As on a server, the events of holds that have ended are then written.
func (f *frozen) goTo(at time.Time) {
	f.at.NowNs = at.UnixNano()
	for more := true; more; {
		f.table.Collect(f.at, 1<<20)
		ends := f.table.Ended(engine.MaxEnds)
		f.table.Decide(f.at, ends, make([]engine.Decision, len(ends)))
		more = len(ends) > 0
	}
}

func (f *frozen) Now() engine.Stamp { return f.at }

func (f *frozen) Decide(ops []engine.Op, out []engine.Decision) error {
	f.table.Decide(f.at, ops, out)
	return nil
}

func (f *frozen) DecideAtomic(ops []engine.Op, out []engine.Decision) error {
	f.table.DecideAtomic(f.at, ops, out)
	return nil
}

func (f *frozen) Inspect(key []byte) (engine.Info, bool) { return f.table.Inspect(f.at, key) }
func (f *frozen) Len(database int) int64                 { return f.table.LenWithin(f.at, database, hashslot.All) }
func (f *frozen) Scan(cursor uint64, count int, visit func(key []byte, a engine.Algorithm)) uint64 {
	return f.table.Scan(f.at, cursor, count, visit)
}
func (f *frozen) RandomKey(database int) []byte { return f.table.RandomKey(f.at, 0, database) }
func (f *frozen) Holds(policy, key []byte, cursor uint64, count int) ([]engine.OpenHold, uint64) {
	return f.table.Holds(f.at, policy, key, cursor, count)
}
func (f *frozen) BlocksEverywhere() engine.BlocksEverywhere  { return f.table.BlocksEverywhere(f.at) }
func (f *frozen) FromBlock(key []byte) engine.FromBlock      { return f.table.FromBlock(f.at, key) }
func (f *frozen) Top(v engine.Verdict, n int) []engine.Heavy { return f.table.Top(f.at, v, n) }
func (f *frozen) Policies() *engine.Policies                 { return f.table.Policies() }
func (f *frozen) Clear() error                               { f.table.Clear(); return nil }
func (f *frozen) ClearDatabase(database int) error {
	return f.Decide([]engine.Op{engine.Flush(database, 0)}, make([]engine.Decision, 1))
}
func (f *frozen) Save() error                  { return limiter.ErrNoDisk }
func (f *frozen) LastSave() time.Time          { return time.Time{} }
func (f *frozen) Stats() engine.Stats          { return f.table.Stats(f.at) }
func (f *frozen) Advance(d time.Duration) bool { f.at.NowNs += int64(d); return true }

// Events reads the log of events; see engine.Table.Events.
func (f *frozen) Events(_ int, after uint64, n int) ([]engine.Event, engine.EventsPosition, <-chan struct{}) {
	return f.table.Events(after, n)
}

// EventsBefore returns the cursor of the newest event before a time; see engine.Table.EventsBefore.
func (f *frozen) EventsBefore(_ int, atMs int64) uint64 { return f.table.EventsBefore(atMs) }

// client returns a client of a server that decides with f.
func (f *frozen) client() (*commands.Local, error) {
	srv, err := server.New(server.Config{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}, f)
	if err != nil {
		return nil, err
	}
	return srv.Local(""), nil
}
