// Package persistence keeps a table of limiters across restarts. It loads the state from a data directory, and flushes
// changes about every 600 ms and at shutdown. It owns the clock, whose time must survive with the state. Node combines
// the three: it is the limiter of a server that runs alone.
//
// # What it promises
//
//   - A clean shutdown loses nothing. The next start continues from the exact state.
//   - A crash of the process or of the machine loses at most the decisions that no finished flush has written. These
//     are normally the decisions of the last second, and never a decision from before the last return of Save. The
//     units of a lost decision can be granted again. No granted unit is counted twice. An operation is kept whole or
//     not at all, whatever number of keys, holds and events it changed.
//   - Limiter time never goes back and is never before a stored entry, whatever the wall clock does between two runs.
//   - A directory that is damaged, in use, foreign or of a newer version is refused. The error says what was found and
//     what to do. The state is loaded in full or not at all, and nothing is repaired silently.
//   - A disk failure at run time ends the process through Options.OnFatal, so no decision is answered whose state
//     cannot be saved.
//
// # The data directory
//
//	FORMAT    the version of all files below, as text
//	FLUSHED   two slots with marks, against which the state is verified: see mark
//	state/    a Pebble store that is a journal of changes: see journal
//
// A flush writes the state of one moment (see engine.Table.Drain), in atomic batches. Each batch ends with a clock
// record, whose time is not before that of its entries. The last batch of a flush has only a record, and is synced to
// disk. A crash during a flush keeps some of its first batches. The next start does not load them, and its first write
// deletes them. Overwritten changes and deleted entries stay in the journal until a rewrite pass has copied the
// unchanged entries: see rewritePass.
//
// # Images
//
// A replicated node writes no flushes, because its log makes decisions durable. Images keeps the state at one log entry
// as a complete and verified snapshot. A snapshot costs the changes since the previous one. Type Images describes the
// directory. A crash leaves the old image or the new one, complete. A damaged image is refused before any part of it is
// loaded, at the start and when another node sends it.
//
// # Backups
//
// A backup is the state of a running node as one stream: a head (see Contents) and the stream of an image. A server
// that runs alone turns its store into an image for this purpose: it adds a record and links the files into
// backup.tmp/. Restore verifies every byte and every entry in restore.tmp/ before it moves any file into place.
//
// # Differences from Redis
//
// Redis' append-only file can sync every write. Here no decision waits for the disk. An operator who needs every
// decision on disk before its answer runs a cluster of one node.
//
// # Damage
//
// If one file is damaged, also after a crash, the damage is harmless or weir refuses to start. The store is first
// opened read-only. Each item of the journal must exist, from its first item to the last one that FLUSHED promises.
// Only then does weir change the directory. A torn write after the last mark is no damage.
//
// DESIGN.md explains the decisions and lists the invariants with their tests.
package persistence
