// Package engine decides: it holds the state of every limiter in a sharded table in memory,
// and the algorithms that turn (state, time, request) into (state, decision).
//
// The package is pure. It reads no clock, opens no file or socket and logs nothing; the
// caller passes the time of a decision as a Stamp. The same operations with the same stamps
// give the same answers and the same state, on any machine, with any number of shards, in
// batches of any size.
//
// # Parts
//
// A Table routes an operation to the shards of its keys (routing.go), locks them (batch.go),
// and carries it out (do.go). Each algorithm is a file of functions on the store of a shard:
// bucket.go, fixed.go, slidingcounter.go, sliding.go, concurrency.go, strike.go, counter.go;
// take.go has what they share. A check decides under all limits of its policies (check.go,
// checkanswer.go), a hold keeps what a check took (hold.go), and denials.go answers what a
// leader may deny without a log entry. Policies (policy.go, policyset.go, policycodec.go) know
// no table; the policy book of a table does (policybook.go).
//
// Below it, package store keeps the entries of a shard, evicts and stores them, in the pages
// of package arena. Packages unitlog, leases and script keep the longer states; rule and
// calendar say what limits and windows are. imports_test.go lists who may import whom.
//
// # What it promises
//
//   - Exact arithmetic. All quantities are integers; products are taken in 128
//     bits, so nothing drifts, rounds away or overflows at any legal argument.
//     A reply is rounded only at the very end, and only in the safe direction:
//     waits up, remaining units down.
//   - A denied operation takes nothing. If it came with another limit than the one
//     remembered for a bucket, a fixed window or a sliding window counter, and would
//     fit that limit some day, the new limit is in force from then on. A look (cost
//     0) and a dry run change nothing that can be observed.
//   - An entry that is idle under the limit last used on it is the same as no
//     entry. The table forgets it when convenient, a bounded amount of work per
//     operation, and no answer depends on when.
//   - Tables that carry out the same operations at the same stamps, which never go
//     back, are replicas: they decide alike and have the same StateHash, whatever their
//     shards, whenever they collect, are stored and loaded, or are looked at (Inspect,
//     Scan, RandomKey, Has, Top, Denials, Victims, StateHash), with any stamp. This holds
//     without a memory bound, and with one for tables that are Replica: those evict
//     nothing but by OpForget, and compaction changes nothing that can be observed.
//   - A hold takes its units when it is made and gives back, at its end or before, at
//     most what still counts of them: no sequence of holds lets through more than the
//     limit. When the table notices the end does not matter, and holds are never evicted.
//   - Memory is bounded. At the bound the table evicts the entry nearest to idle of a few
//     that it looks at. Which entries these are depends on the hash seed of the process, so
//     two tables do not evict the same.
//   - The table holds no pointer per key: entries live in pages of bytes, found
//     through an index of 32-bit references, so the garbage collector has little
//     to follow. One token bucket costs at most 64 bytes with a 15-byte key, one
//     admitted unit of an exact sliding log at most 12.
//
// # What it leaves to others
//
// Parsing of commands, the choice of a clock, calendar arithmetic (package
// server resolves a calendar window to two instants before it asks), storage
// (package persistence drains changes and loads them back) and replication.
//
// # Where it differs from its sources
//
// The buckets are a GCRA (ITU-T I.371, 1996) whose theoretical arrival time is
// kept in units of 1/rate nanoseconds, which makes it an integer for every
// rational rate. The sliding window counter is the two-window estimate known
// from Cloudflare's "How we built rate limiting" (2017), computed exactly.
package engine
