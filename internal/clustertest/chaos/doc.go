// Package chaos breaks a running weir on purpose and judges what its clients saw.
//
// It starts real server processes with real disks on loopback, puts a TCP proxy
// of its own into every directed link between them, and lets many clients decide
// while nodes are killed, paused, cut off, slowed, filled up, damaged and moved in time.
// Every answer is written down with the client's monotonic clock, and pure
// functions judge the histories afterwards: nothing the server says about itself
// is taken for proof.
//
// # What is checked
//
//   - [OverAdmittedBucket], [OverAdmittedSliding]: what was granted within any
//     interval of real time is within what the algorithm allows for it.
//   - [Accounted]: on limits that never refill, every acknowledged grant is still
//     counted after all nodes were killed and restarted.
//   - [Linearizable]: the history of such a key is one that a single counter could
//     have produced, each reply with what was left (porcupine).
//     Reads at the leader and at followers are part of that history.
//   - [Staleness]: a read under READONLY counts every grant that was acknowledged before
//     its call, less the age that it tells. A read after a write of the same client, at
//     any two nodes, has the write.
//   - [Books]: checks of several policies at once, holds, and policies that change are
//     judged by package ledger: linearizable over all keys of a history, or explained
//     in the end; no part of a check is taken, no unit of a hold lost or given twice, no
//     decision made under half of a change.
//   - [OverHeld]: no more leases are certainly held than there are slots.
//   - [Useful]: outside the seconds without a leader, nearly everything that could
//     be admitted was. A limiter that denies everything passes no gate.
//   - [Replicas]: nodes at the same applied index have the same state.
//   - Exactly once: a command repeated with its ID answers what it answered
//     before, and takes nothing more.
//
// # Words
//
// An operation is answered, not applied (TRYAGAIN, CLUSTERDOWN, MOVED,
// OVERLOADED, LOADING, or the node was never reached) or unknown (UNKNOWN, a lost
// connection, no answer in time). Unknown counts as not granted where grants are
// bounded from above, and as possibly granted where they are bounded from below.
//
// # Seeds
//
// One seed gives one schedule: which fault, when, for how long, and the seed of
// every choice it makes. Which node leads at that moment is the cluster's own
// affair, so a schedule is repeated exactly and an outcome is not.
//
// # What it leaves to others
//
// Power loss, torn writes and disk errors at a chosen operation are for tests in
// fake time with a file system in memory; a kill -9 keeps what the kernel has.
package chaos
