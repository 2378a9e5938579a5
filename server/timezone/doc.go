// Package timezone computes the days, weeks, months and years of a time zone. Calendars returns the window that
// contains a moment, for decisions. Tables returns the clock changes of a zone over decades, which policies carry.
//
// Zones come from the host's database, or from the embedded one. The package reads no clock.
package timezone
