// Package calendar knows where days, weeks, months and years begin in a time zone that is
// given as data, so that every node finds the same boundary whatever its own time zone
// database says.
package calendar
