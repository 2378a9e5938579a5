// Package timezone computes the days, weeks, months and years of a time zone. Calendars returns the window that
// contains a moment, for decisions. Tables returns the clock changes of a zone over decades, which policies carry.
//
// Zones come from the database that weir ships, or from where ZONEINFO points to. The package reads no clock.
package timezone
