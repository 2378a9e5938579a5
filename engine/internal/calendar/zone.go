package calendar

import (
	"sync/atomic"

	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/rule"
)

// Zone is a time zone as data: the offsets of its clocks over time. A policy with a calendar window contains a Zone.
// So every node finds the same boundary at any time, whatever its own time zone database contains. The Zone of a
// policy never changes.
type Zone struct {
	Name string // IANA name, 1..MaxNameLen bytes
	// Changes are the offsets from UTC, ascending by time. The first offset also applies before its time. No changes
	// means UTC. There are at most MaxChanges.
	Changes []Change

	recent [rule.Year + 1]atomic.Pointer[zoneWindow] // by mode: the window asked for last
}

// Change sets the offset of clocks from UTC to OffsetSec from a time on.
type Change struct {
	AtSec     int64 // Unix seconds
	OffsetSec int64 // within a day and a half
}

// MaxNameLen and MaxChanges bound a time zone. MaxChanges is enough for two changes a year over eighty years.
const (
	MaxNameLen = 64
	MaxChanges = 200
)

// Ends holds the ends of two consecutive calendar windows on the wall clock (Unix nanoseconds). The first window
// contains the time of the request. The second is for a request that is decided just after the boundary.
type Ends struct {
	EndNs, NextEndNs int64
	Zone             string // the name of the time zone of a request; no part of a log entry
}

// zoneWindow is a calendar window on the wall clock, in Unix nanoseconds.
type zoneWindow struct {
	startNs int64
	ends    Ends
}

const (
	daySec       = int64(24 * 3600)
	MaxOffsetSec = daySec * 3 / 2
)

// Window returns the ends of the calendar window around a wall clock time, and of the next window. Its cache
// has no observable effect.
func (z *Zone) Window(wallNs int64, mode rule.WindowMode) *Ends {
	if w := z.recent[mode].Load(); w != nil && w.startNs <= wallNs && wallNs < w.ends.EndNs {
		return &w.ends
	}
	w := z.windowAt(wallNs, mode)
	z.recent[mode].Store(w)
	return &w.ends
}

// windowAt computes a window from calendar dates, never from a number of hours: a day has 23 or 25 hours when
// clocks change.
func (z *Zone) windowAt(wallNs int64, mode rule.WindowMode) *zoneWindow {
	wallSec := floorDiv(wallNs, 1e9)
	first, step := windowDays(floorDiv(wallSec+z.offsetAt(wallSec), daySec), mode)
	begin := func(i int64) int64 { return z.startOfDay(step(first, i)) * 1e9 }
	w := &zoneWindow{startNs: begin(0)}
	i := int64(1)
	for ; w.ends.EndNs <= wallNs || i == 1; i++ { // more than one round if the zone skipped a whole day
		w.ends.EndNs = begin(i)
	}
	for ; w.ends.NextEndNs <= w.ends.EndNs; i++ {
		w.ends.NextEndNs = begin(i)
	}
	return w
}

// windowDays returns the first day of the window that contains a day. Days count from the epoch. step takes this first
// day, and returns the first day of the i-th window after it.
func windowDays(day int64, mode rule.WindowMode) (first int64, step func(first, i int64) int64) {
	year, month, _ := civilOf(day)
	switch mode {
	case rule.Day:
		return day, func(d, i int64) int64 { return d + i }
	case rule.Week:
		sinceMonday := ((day+3)%7 + 7) % 7 // the epoch was a Thursday
		return day - sinceMonday, func(d, i int64) int64 { return d + 7*i }
	case rule.Month:
		return dayOf(year, month), func(_, i int64) int64 { return dayOf(year, month+i) }
	}
	return dayOf(year, 1), func(_, i int64) int64 { return dayOf(year+i, 1) }
}

// offsetAt returns the offset of clocks from UTC at an instant.
func (z *Zone) offsetAt(sec int64) int64 {
	offset := int64(0)
	for i, c := range z.Changes {
		if i > 0 && c.AtSec > sec {
			break
		}
		offset = c.OffsetSec
	}
	return offset
}

// startOfDay returns the first instant of a local date, in Unix seconds. If clocks change at midnight, 0:00 may not
// exist; then the day begins at the change. If 0:00 exists twice, the day begins at the first.
func (z *Zone) startOfDay(day int64) int64 {
	local := day * daySec
	if len(z.Changes) == 0 {
		return local
	}
	for i, c := range z.Changes {
		from, until := c.AtSec, arith.Never
		if i == 0 {
			from = -arith.Never
		}
		if i+1 < len(z.Changes) {
			until = z.Changes[i+1].AtSec
		}
		if at := local - c.OffsetSec; at < until {
			return max(at, from) // if at is before from, the clocks skipped 0:00, and the day begins at the change
		}
	}
	panic("engine: the last offset of a zone ends")
}

// floorDiv returns a/b rounded down; b is positive.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// The days of the proleptic Gregorian calendar, counted from the epoch in eras of
// 400 years that begin in March (Howard Hinnant, "chrono-compatible low-level date
// algorithms").
const (
	eraDays   = 146097
	eraToZero = 719468 // days from 0000-03-01 to the epoch
)

// dayOf returns the first day of a month as days since the epoch. month may be above 12.
func dayOf(year, month int64) int64 {
	year += floorDiv(month-1, 12)
	month -= 12 * floorDiv(month-1, 12)
	if month <= 2 {
		year--
		month += 12
	}
	era := floorDiv(year, 400)
	yearOfEra := year - era*400
	dayOfYear := (153*(month-3) + 2) / 5
	return era*eraDays + yearOfEra*365 + yearOfEra/4 - yearOfEra/100 + dayOfYear - eraToZero
}

// civilOf returns the date of a day that is given as days since the epoch.
func civilOf(day int64) (year, month, dayOfMonth int64) {
	day += eraToZero
	era := floorDiv(day, eraDays)
	dayOfEra := day - era*eraDays
	yearOfEra := (dayOfEra - dayOfEra/1460 + dayOfEra/36524 - dayOfEra/146096) / 365
	dayOfYear := dayOfEra - (365*yearOfEra + yearOfEra/4 - yearOfEra/100)
	fromMarch := (5*dayOfYear + 2) / 153
	year, month, dayOfMonth = yearOfEra+era*400, fromMarch+3, dayOfYear-(153*fromMarch+2)/5+1
	if month > 12 {
		month -= 12
		year++
	}
	return year, month, dayOfMonth
}

// Valid reports whether a table can compute with the zone.
func (z *Zone) Valid() bool {
	for i, c := range z.Changes {
		if c.OffsetSec < -MaxOffsetSec || c.OffsetSec > MaxOffsetSec || i > 0 && c.AtSec <= z.Changes[i-1].AtSec {
			return false
		}
	}
	return len(z.Name) > 0 && len(z.Name) <= MaxNameLen && len(z.Changes) <= MaxChanges
}
