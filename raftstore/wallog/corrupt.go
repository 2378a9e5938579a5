package wallog

import (
	"fmt"

	"github.com/hashicorp/raft-wal/types"
)

// CorruptError names the damaged position in a log. It wraps types.ErrCorrupt.
type CorruptError struct {
	File   string
	Offset int64
	Entry  uint64 // the first damaged entry; 0: the damage is not in an entry
	Reason string
}

func (e *CorruptError) Error() string {
	what := e.File
	if e.Offset > 0 {
		what = fmt.Sprintf("%s at offset %d", what, e.Offset)
	}
	if e.Entry > 0 {
		return fmt.Sprintf("log entry %d is corrupt (%s): %s", e.Entry, what, e.Reason)
	}
	return fmt.Sprintf("log is corrupt (%s): %s", what, e.Reason)
}

// Unwrap returns types.ErrCorrupt.
func (e *CorruptError) Unwrap() error { return types.ErrCorrupt }
