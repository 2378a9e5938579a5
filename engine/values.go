package engine

import (
	"github.com/weir-project/weir/engine/internal/calendar"
	"github.com/weir-project/weir/engine/internal/heavy"
	"github.com/weir-project/weir/engine/internal/store"
)

// The types of calendar windows. Package calendar documents each of them.
type (
	Zone       = calendar.Zone
	ZoneChange = calendar.Change
	Calendar   = calendar.Ends
)

// MaxZoneChanges bounds the changes of a time zone.
const MaxZoneChanges = calendar.MaxChanges

// Verdict selects what Top counts, and Heavy is an element of its answer.
type (
	Verdict = heavy.Verdict
	Heavy   = heavy.Hitter
)

// The verdicts.
const (
	Admitted = heavy.Admitted
	Denied   = heavy.Denied
)

// Change is one entry in its stored form. A nil Value means that the entry is gone. Key is an opaque storage
// key (not the client's key alone), and Value an encoding that Load reads. Both are valid only until the call
// that receives them returns.
type Change = store.Change

// ErrStored is returned by Load for bytes that Drain did not write.
var ErrStored = store.ErrStored

// MaxHoldBytes bounds the bytes of the policies and keys of one hold, including four bytes for each pair.
const MaxHoldBytes = store.MaxHoldBytes

// FullPolicy selects what happens to a new entry if memory is full.
type FullPolicy = store.FullPolicy

// The policies.
const (
	LeastHarm = store.LeastHarm // evict the entry nearest to idle
	Deny      = store.Deny      // answer OutOfMemory
	Replica   = store.Replica   // add it; the leader evicts by OpForget, and compaction changes no answer
)
