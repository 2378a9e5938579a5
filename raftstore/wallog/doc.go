// Package wallog opens the replicated log on disk: raft-wal, told when to write through,
// verified before any of it is changed, and repaired where a crash can leave it unusable.
//
// Only the last write to a log can be torn, and only if it was not acknowledged. Open verifies
// the checksum of every batch. A batch that is not whole ends the log if it is such a torn
// write; anything else is damage, and Open refuses the log. Three things tell the two apart:
//
//   - a later batch whose checksum holds: everything before it was synced (torn.go);
//   - the acknowledged mark, a small file that says where the last acknowledged append ended
//     (mark.go). It is exact after a kill of the process. After a loss of power it may be
//     about 100 ms old;
//   - the sectors: a torn write lacks whole sectors, which are still zero (torn.go).
//
// One case remains undecided: power fails within those 100 ms after the last batch was
// acknowledged, and the same failure zeroes or cuts off a sector of that batch.
package wallog
