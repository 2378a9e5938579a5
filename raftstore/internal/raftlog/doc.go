// Package raftlog wraps the log store of the Raft library.
//
// A Log ends the process at the first failed write, because the library's last index is wrong from then on. It
// reports a hung write to the watchdog. Arrivals records when each entry reached this node, so that a new leader's
// clock can continue from there.
//
// The package stores nothing itself: a Store does, on disk the one of package wallog, which also controls when entries
// are synced.
package raftlog
