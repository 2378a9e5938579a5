package engine

import (
	"github.com/weir-project/weir/engine/internal/calendar"
	"github.com/weir-project/weir/engine/internal/heavy"
	"github.com/weir-project/weir/engine/internal/store"
)

// The vocabulary of calendar windows. Package calendar says what each of them is.
type (
	Zone       = calendar.Zone
	ZoneChange = calendar.Change
	Calendar   = calendar.Ends
)

// The bounds of a time zone.
const (
	MaxZoneLen     = calendar.MaxNameLen
	MaxZoneChanges = calendar.MaxChanges
)

// Verdict and Heavy are what Top is asked about and answers.
type (
	Verdict = heavy.Verdict
	Heavy   = heavy.Hitter
)

// The verdicts.
const (
	Admitted = heavy.Admitted
	Denied   = heavy.Denied
)

// Change is one entry as it is stored: Value nil means the entry is gone. Key is an opaque
// storage key (not the client's key alone), Value an encoding that Load understands. Both
// are only valid until the call they are handed to returns.
type Change = store.Change

// ErrStored is returned by Load for what Drain did not write.
var ErrStored = store.ErrStored

// MaxHoldBytes bounds the policies and keys of one hold, four bytes for each pair included.
const MaxHoldBytes = store.MaxHoldBytes

// FullPolicy says what happens to a new entry when memory is full.
type FullPolicy = store.FullPolicy

// The policies.
const (
	LeastHarm = store.LeastHarm // evict what is nearest to idle
	Deny      = store.Deny      // answer OutOfMemory
	Replica   = store.Replica   // add it: evictions come as OpForget, and compaction changes no answer
)
