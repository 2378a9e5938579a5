// Package readindex makes the reads of a node linearizable with ReadIndex (D. Ongaro, "Consensus:
// Bridging Theory and Practice", section 6.4): a follower asks the leader for its read index and
// answers when it has applied that entry. Nothing is written to the log.
//
// It also knows how old a read is that asks nobody (freshness.go).
package readindex
