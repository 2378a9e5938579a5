package limiter

import (
	"time"

	"github.com/weir-project/weir/engine"
)

// Limiter decides: a node that runs alone, or a node of a cluster. All methods may be
// called from many goroutines.
type Limiter interface {
	// Now is the time the limiter would stamp a decision with.
	Now() engine.Stamp
	// Decide carries out a pipeline; see engine.Table.Decide. An error means that
	// none of the answers may be used; it is answered to every operation.
	Decide(ops []engine.Op, out []engine.Decision) error
	// DecideAtomic carries out a MULTI/EXEC batch as one step.
	DecideAtomic(ops []engine.Op, out []engine.Decision) error
	// Inspect, Len, Scan and RandomKey look at the keys; see engine.Table.
	Inspect(key []byte) (engine.Info, bool)
	Len() int64
	Scan(cursor uint64, count int, visit func(key []byte, a engine.Algorithm)) uint64
	RandomKey() []byte
	// BlocksEverywhere lists the keys of the blocks everywhere; see engine.Table.BlocksEverywhere.
	BlocksEverywhere() []string
	// Top returns the heaviest keys of this node; see engine.Table.Top.
	Top(v engine.Verdict, n int) []engine.Heavy
	// Policies are the policies in force. What it returns does not change.
	Policies() *engine.Policies
	// Clear forgets everything, in memory and on disk.
	Clear() error
	// Save writes what changed to disk and returns when it is there.
	// ErrNoDisk when the node runs without one.
	Save() error
	// LastSave is when the last successful save ended; the zero time: never.
	LastSave() time.Time
	Stats() engine.Stats
	// Advance moves a test clock by d; false when the clock is a real one.
	Advance(d time.Duration) bool
}
