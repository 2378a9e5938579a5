// Package store keeps the entries of one shard in an arena: limiters, blocks, remembered answers,
// holds and their allocations. An index finds an entry by the hash of its key. A timing wheel
// orders entries by the time at which they become idle.
//
// The package knows the layout of every algorithm's state: when it is idle, how many units it
// counts, and how it is encoded. It collects idle entries, evicts the least harmful entries at the
// memory bound, compacts pages, and hands out changed entries. It does not decide: package engine
// computes the new state of an operation and writes it back.
//
// The caller holds the lock of the shard that guards a store. The stores of a table share Memory,
// which may be read without a lock.
package store
