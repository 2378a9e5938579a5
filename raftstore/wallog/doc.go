// Package wallog opens the replicated log on disk: raft-wal, told when to write through,
// verified before anything of it is changed, and repaired where a crash can leave it unusable.
//
// Only the last write to a log can be torn, and only if nobody was told that it had succeeded.
// Open verifies the checksum of every batch. A batch that is not whole ends the log when it is
// such a write; anything else is damage, and the log is refused. What tells the two apart:
//
//   - a later batch whose checksum holds: what stands before it was synced (torn.go);
//   - the acknowledged mark, a small file that says where the last append ended that has
//     returned (mark.go). It is exact until the machine stops, and is on disk within about
//     100 ms otherwise;
//   - the sectors: a torn write lacks whole ones, which are still zero (torn.go).
//
// One case remains undecided: power fails, and zeroes or cuts off a sector of the very last
// batch, within those 100 ms after it was acknowledged.
package wallog
