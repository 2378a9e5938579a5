// Package timers defines the periods and bounds that several packages of a node share. A package defines its own
// periods itself.
package timers
