// Package unitlog keeps the exact log of a sliding window: when units were admitted, and
// how many, in a chain of blocks in an arena. A unit admitted alone costs five to seven
// bytes.
//
// A log forgets what has left its window from the front, whole blocks at a time, and can
// give back or insert units anywhere. It knows which of its units were stored already, so
// that a log with many units is not written whole for each new one.
//
// Which window counts, and what a unit is worth, is known to the user of the log only.
package unitlog
