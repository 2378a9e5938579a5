// Package timers holds the periods and bounds that several parts of a node share. A period that one
// part alone uses stands in that part.
package timers
