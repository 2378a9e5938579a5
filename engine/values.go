package engine

import (
	"github.com/weir-project/weir/engine/internal/calendar"
	"github.com/weir-project/weir/engine/internal/heavy"
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
