// Package heavy finds the heavy hitters: the keys for which the most units were admitted,
// or denied, of late. A counter belongs to one shard and is guarded by its lock.
//
// What it tells is an estimate with a known bound, costs a decision next to nothing, and is
// no part of any decision: it is neither stored nor replicated.
package heavy
