// Package timezone finds the days, weeks, months and years of a time zone: Calendars the window
// that contains a moment, for decisions, and Tables the changes of a zone's clock over decades,
// for policies, which carry them.
//
// Zones come from the host's database, or from the one built in. Nothing here reads a clock.
package timezone
