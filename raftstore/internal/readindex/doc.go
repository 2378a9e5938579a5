// Package readindex makes the reads of a node linearizable with ReadIndex (D. Ongaro, "Consensus: Bridging Theory and
// Practice", section 6.4). A follower asks the leader for its read index and answers when it has applied that entry.
// ReadIndex writes nothing to the log. Package quorum implements the round in which the leader confirms its leadership.
//
// The package also bounds the age of stale reads, which ask no other node (freshness.go).
package readindex
