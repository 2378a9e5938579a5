// Package raftlog guards the log store under the Raft library.
//
// A Log ends the process at the first write that fails, because the last index of the library is
// wrong from then on, and tells the watchdog of a write that hangs. Arrivals notes when each entry
// reached this node: the clock of a new leader goes on from there.
package raftlog
