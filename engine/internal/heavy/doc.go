// Package heavy finds the heavy hitters: the keys with the most units admitted or denied lately.
// A counter belongs to one shard and is guarded by the lock of that shard.
//
// Its numbers are estimates with a known bound, and counting costs a decision next to nothing. No
// decision depends on them. They are neither stored nor replicated.
package heavy
