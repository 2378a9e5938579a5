// Package fsm applies the committed entries of the Raft log to the table of package engine.
//
// An FSM is a pure function of the log: the same entries give the same table, the same answers and the same history
// hash on every node. Limiter time is the stamp of the last entry and never decreases. An entry is void if its stamp
// was made for another term.
//
// The FSM copies a snapshot in passes while it applies entries, and ends with a short standstill. Packages pipeline
// and leadership decide which entries are proposed.
package fsm
