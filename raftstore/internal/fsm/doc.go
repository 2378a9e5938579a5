// Package fsm applies the committed entries of the Raft log to the table of package engine.
//
// An FSM is a pure function of the log: the same entries give the same table, the same answers and
// the same history hash on every node. Limiter time is the stamp of the last entry and never goes
// back. An entry whose stamp was made for another term is void.
//
// Snapshots are taken in passes while entries go on being applied, with a short standstill at the
// end. The pipeline and the leadership decide which entries are proposed.
package fsm
