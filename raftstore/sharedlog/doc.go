// Package sharedlog keeps the logs of all Raft groups of a host in one write-ahead log, with group commit.
//
// A Log writes records to a Base, which is a raft-wal (package wallog). A Part is the log of one group: it implements
// the Raft library's LogStore and StableStore. A record is an entry, a term or vote, a removal of the end or of the
// beginning of a part, or the end of a part. One caller writes the records of all callers that wait, with one append
// and one sync, and then answers all of them.
//
// A Part keeps the promises of a raft-wal. A write is on disk when it returns, if the Base syncs its appends. A crash
// leaves a prefix of the writes of every part. Entries have consecutive indexes. The first failed append fails all
// later writes of all parts, and package raftlog then ends the process.
//
// An index in memory maps each entry of a part to its record. Open rebuilds it from the records.
//
// The Base is truncated before the oldest live record. Three rules keep it short (compaction.go):
//
//   - Terms and votes that are older than every entry are written again at the end.
//   - When half of the allowed dead records are reached, the part with the oldest entry is asked for a snapshot.
//     It can keep its entries outside the oldest quarter of the log, for followers that lag.
//   - When all of them are reached, the live records in the oldest quarter of the log are written again at the end.
//
// A group's data directory names the group's part (name.go). A group with a new directory therefore begins with an
// empty log and without a vote, whatever an earlier replica of the group left here.
package sharedlog
