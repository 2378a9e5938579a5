// Package raftstore is a limiter that several nodes keep together: the table of
// package engine under consensus.
//
// A Node only wires its parts together. What belongs to the process is the host
// (internal/host): the inter-node port and the other nodes behind it, the identity, the
// disk, the timers and the memory bound. What belongs to one Raft group is in group.go. A
// host has one group today.
//
// A decision travels like this. Callers append their operations to the open batch
// (internal/queue). When nothing is in flight, or enough has gathered, the pump takes the
// batch, stamps it once with limiter time and proposes it as one entry of the Raft log; on
// a follower it sends the batch to the leader instead (internal/pipeline). Every node
// applies committed entries to its own table in the same order (internal/fsm), and the
// node that proposed an entry finds the answers there and wakes its callers.
//
//	what                                         where
//	limiter time, handing leadership over        internal/leadership
//	denials, which need no log                   internal/pipeline
//	reads, which need no log (ReadIndex)         internal/readindex
//	asking a majority for its term               internal/quorum
//	joining, promoting and removing nodes        internal/membership
//	snapshots and backups                        internal/snapshots, internal/images
//	a node that computes other results           internal/divergence
//	a lost majority, a log that must not be used internal/recovery
//	what the Raft library needs to be safe       internal/raftlog, internal/transport, internal/watchdog
//	a directory and the node that it belongs to  internal/identity
//
// Operations and decisions are encoded by package wire, carried by package peer, and
// logged by package wallog.
package raftstore
