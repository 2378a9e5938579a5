// Package timers calls the periodic checks of all groups of a process in one loop, and defines the periods and bounds
// that several packages of a node share. A package defines its own periods itself.
package timers
