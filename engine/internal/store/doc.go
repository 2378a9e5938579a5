// Package store keeps the entries of one shard: limiters, blocks, remembered answers, holds
// and what holds took, in an arena, found by the hash of their keys and ordered by the time
// at which they become idle.
//
// It knows the state of every algorithm: when it is idle, what it uses, how it is stored. It
// collects what is idle, evicts what does the least harm at the bound of memory, moves entries
// so that whole pages become free, and hands out what changed. It does not decide: package
// engine computes what an operation makes of a state, and writes it back.
//
// A store is guarded by the lock of its shard, which the caller holds. Memory, which the stores
// of a table share, may be read without one.
package store
