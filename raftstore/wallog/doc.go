// Package wallog opens the replicated log on disk: raft-wal, told when to write
// through, and mended where a crash can leave it unusable.
package wallog
