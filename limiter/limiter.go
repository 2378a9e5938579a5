package limiter

import (
	"time"

	"github.com/weir-project/weir/engine"
)

// Limiter decides operations, as a server that runs alone or as a node of a cluster. All methods may be called from
// many goroutines. The names in operations are stored names: clients decide through Databases, and read through a
// Reader.
type Limiter interface {
	Decider
	State
}

// Decider is a Limiter without its reads.
type Decider interface {
	// Now returns the stamp of a decision made now.
	Now() engine.Stamp
	// Decide executes a pipeline (see engine.Table.Decide). After an error no answer in out is valid, and the error
	// is the answer to every operation.
	Decide(ops []engine.Op, out []engine.Decision) error
	// DecideAtomic executes a MULTI/EXEC batch as one step (see engine.Table.DecideAtomic). Errors are as for Decide.
	DecideAtomic(ops []engine.Op, out []engine.Decision) error
	// Clear deletes everything but the policies, in memory and on disk.
	Clear() error
	// ClearDatabase deletes everything of one database but the blocks everywhere, in memory and on disk.
	ClearDatabase(database int) error
	// Save writes all changes to disk and returns when they are on disk. It returns ErrNoDisk without a data directory.
	Save() error
	// LastSave returns when the last successful save ended, or the zero time before the first one.
	LastSave() time.Time
	// Stats returns the counters of this node. See engine.Table.Stats.
	Stats() engine.Stats
	// Advance moves a test clock forward by d. It returns false if the Limiter has a real clock.
	Advance(d time.Duration) bool
}
