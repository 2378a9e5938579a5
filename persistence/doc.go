// Package persistence keeps a table of limiters across restarts. It loads the
// state from a data directory, writes what changed every second at the latest and at
// shutdown, and owns the clock whose time must survive with the state. Node puts
// the three together: the limiter of a server that runs alone.
//
// # What it promises
//
//   - A clean shutdown loses nothing: the next start goes on from the exact state.
//   - A crash, of the process or of the machine, forgets at most the decisions
//     that no finished flush has seen: those of the last second, or of the time
//     since Save last returned, which is shorter. What is forgotten is forgotten in
//     the callers' favor; nothing they were granted is counted twice.
//   - Limiter time never goes back and is never behind a stored entry, whatever the
//     wall clock does between two runs.
//   - A directory that is damaged, newer than this program, in use, or not weir's is
//     refused with a message that says what was found and what to do. The state is
//     loaded in full or not at all, and nothing is repaired behind anyone's back.
//   - A disk that fails while weir runs ends the process, through Options.OnFatal:
//     it does not go on answering as if the state were saved.
//
// # The data directory
//
//	FORMAT    the version of everything below, as text
//	FLUSHED   two slots with marks that the state is held against: see mark
//	state/    a Pebble store that is a journal of changes: see journal
//
// A flush writes its changes in batches, each atomic and each ending with a clock record
// stamped after its entries, and ends with one batch that is synced to the disk. What was
// changed again since, or is gone, stays in the journal until a round of renewal has
// written what is left of it anew: see round.
// A crash in the middle of a flush keeps a prefix of it, so keys that one
// MULTI/EXEC changed together may come back from different seconds.
//
// # Images
//
// A replicated node keeps no flushes: its log is its durability. Images keeps the
// state at one entry of that log, complete and checked, as a snapshot that costs
// what changed since the one before; see there for the directory. A crash leaves
// the older image or the newer, whole; one that is damaged, wherever, is refused
// before anything of it is loaded, at the start and when another node sends it.
//
// # Backups
//
// A backup is the state of a running node as one stream: a head, see Contents, and that
// of an image. A node that runs alone makes its store one for the moment: a record
// in it, and hard links to its files in backup.tmp/. Restore reads every byte and
// every entry in restore.tmp/ before it puts anything in place.
//
// # Where it differs
//
// Redis's append-only file can sync every write; here a decision is never waited
// for. Who needs every decision on disk before its answer runs a cluster of one.
//
// # Damage
//
// Damage to one file, also after a crash, is harmless or refuses the start. The store is
// opened for reading only, and each item of the journal, from the first to the last that
// FLUSHED promises, must be there; only then does weir change the directory. A write that
// a crash has torn after the last mark is not damage.
package persistence
