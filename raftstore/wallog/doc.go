// Package wallog opens the replicated log on disk, the write-ahead log of a node (raft-wal). It verifies the log before
// it changes any of it, repairs what a crash can leave unusable, and controls when writes are synced.
//
// Only the last write to a log can be torn, and only if it was not acknowledged. Open verifies the checksum of every
// batch. An incomplete batch ends the log if it is such a torn write; anything else is damage, and Open refuses the
// log. Three facts tell the two cases apart:
//
//   - A later batch with a valid checksum: everything before it was synced (torn.go).
//   - The acknowledged mark: a small file records the end of the last acknowledged append (mark.go). It is exact
//     after a kill of the process. After a loss of power it may be about 100 ms old.
//   - The sectors: a torn write lacks whole sectors, which are still zero (torn.go).
//
// One case remains undecided. Power fails within 100 ms after the last batch was acknowledged, and the same failure
// zeroes or cuts off a sector of that batch.
//
// The package does not replace a damaged log: the operator restores the node from a peer.
package wallog
