// Package calendar computes where days, weeks, months and years begin in a time zone. The time
// zone is passed as data, so every node finds the same boundary whatever its own time zone
// database contains.
package calendar
