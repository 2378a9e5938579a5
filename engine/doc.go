// Package engine decides whether a request is admitted. It holds the state of every limiter in a
// sharded table in memory, and implements the algorithms that turn (state, time, request) into
// (state, decision).
//
// The package is pure. It reads no clock, opens no file or socket and logs nothing. The caller
// passes the time of a decision as a Stamp. The same operations with the same stamps give the
// same answers and the same state, on any machine, with any number of shards, in batches of any
// size.
//
// # Parts
//
// A Table routes an operation to the shards of its keys (routing.go), locks them (batch.go), and
// carries the operation out (do.go). Each algorithm is a file of functions on the store of a
// shard: bucket.go, fixed.go, slidingcounter.go, sliding.go, concurrency.go, strike.go,
// counter.go and scripted.go. The file take.go has the code that the algorithms share.
//
// A check decides under all limits of its policies (check.go, checkpart.go, checkbundle.go,
// checkanswer.go). A hold records the units that a check took (hold.go). The file denials.go
// answers requests that a leader may deny without a log entry. Policies (policy.go, policyset.go,
// policycodec.go) do not depend on a table. The policies of a table are in policybook.go.
//
// Package store keeps the entries of a shard in the pages of package arena. It also evicts them
// and encodes them for storage. Packages unitlog, leases and script keep the states of variable
// length. Packages rule and calendar define limits and windows. Package network parses
// addresses. Package internal/walls lists the imports that are allowed.
//
// # What it promises
//
//   - Arithmetic is exact. All quantities are integers, and products are computed in 128 bits. No
//     legal argument makes a result drift or overflow. A reply is rounded at the very end and in
//     the safe direction: waits up, remaining units down. Only scripts of other libraries compute
//     in doubles, as in Redis, with the same bits on every processor.
//   - A denied operation takes nothing, except strikes: a strike may count although it is denied.
//     A denied operation may put its limit in force, if the operation would fit that limit later.
//     A dry run and an operation of cost 0 change nothing that can be observed.
//   - An entry that is idle under the limit last used on it is the same as no entry. The table
//     collects idle entries in bounded steps. No answer depends on when it does.
//   - Tables are replicas if they carry out the same operations at the same stamps, and the stamps
//     never go back. Replicas decide alike and have the same StateHash. They may differ in the
//     number of shards, in when they collect idle entries, and in when they are stored and loaded.
//     They may be read at any stamp (Inspect, Scan, RandomKey, Has, Top, Denials, Victims,
//     StateHash). With a memory bound this holds only for tables with the FullPolicy Replica: they
//     evict by OpForget alone, and their compaction changes nothing that can be observed.
//   - An operation that repeats an idempotency key (Op.ID) within Options.IDLifetimeNs gets the
//     first answer and takes nothing, unless memory is full. Another operation with that key is
//     refused. A decision that took nothing is not repeated but made again (token.go).
//   - A hold takes its units when it is made. At its end or before, it gives back at most the
//     units that still count. No sequence of holds admits more than the limit. An answer does not
//     depend on when the table notices the end of a hold. Holds are never evicted.
//   - Memory is bounded. A change of a policy may lengthen each of its limiters once, by four bytes that
//     the bound does not refuse. At the bound a table with the FullPolicy LeastHarm samples a few entries
//     and evicts the entry nearest to idle. The sample depends on the hash seed of the process, so
//     two tables evict different entries.
//   - The table holds no pointer per key. Entries are bytes in pages, found through an index of
//     32-bit references, so the garbage collector has little to scan. A token bucket costs at most
//     64 bytes with a 15-byte key. In a sliding log of a hundred units, each costs at most 12.
//
// # What it leaves to others
//
// The server parses commands, chooses the clock, and computes the calendar window of an operation
// without a policy (Op.Calendar). Package persistence drains changes to storage and loads them
// back. Package raftstore replicates operations.
//
// # Where it differs from its sources
//
// The buckets are a GCRA (ITU-T I.371, 1996) whose theoretical arrival time is kept in units of
// 1/rate nanoseconds, so it is an integer for every rational rate. The sliding window counter is
// the two-window estimate of Cloudflare's "How we built rate limiting" (2017), computed exactly.
//
// DESIGN.md explains the decisions and lists the invariants with their tests.
package engine
