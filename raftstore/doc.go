// Package raftstore implements a limiter that several nodes replicate with Raft: the table of package engine behind a
// replicated log.
//
// A Node only connects its parts. The host (internal/host) holds the parts of the node: the inter-node port and the
// other nodes, the identity, the disk, the timers and the memory bound. A group (group.go) holds the parts of one
// Raft group. A host has one group.
//
// A process may have several groups, and then one Node for each. Every group has its own directory, identity and
// membership. The groups share the inter-node port, which Options.Hub provides, and the log, which Options.SharedLog
// is. They also share the loop of checks and the exchange of status, which Options.Process provides. A node bootstraps
// or joins the cluster of its group at the addresses of --join. It waits while the hosts at these addresses have not
// opened the group.
//
// A decision takes the following path. Callers append their operations to the open batch (internal/queue). When no
// entry is in flight, or enough operations wait, the pump (internal/pipeline) takes the batch. The leader stamps it
// with limiter time and proposes it as one entry of the Raft log, and a follower sends it to the leader instead. Every
// node applies committed entries to its own table in the same order (internal/fsm). The node that proposed an entry
// then finds the answers and wakes its callers.
//
//	subject                                      package
//	limiter time, transfer of leadership         internal/leadership
//	denials, which need no log entry             internal/pipeline
//	linearizable reads (ReadIndex)               internal/readindex
//	confirmation of the term by a majority       internal/quorum
//	joining, promoting and removing nodes        internal/membership
//	snapshots and backups                        internal/snapshots, internal/images
//	a node that computes other results           internal/divergence
//	a lost majority, a damaged directory         internal/recovery
//	guards around the Raft library               internal/raftlog, internal/transport, internal/watchdog
//	the owner of a data directory                internal/identity
//	agreement on the form of log entries         internal/format
//
// Package wire encodes operations and decisions, package peer carries them between nodes, and package wallog writes
// the write-ahead log. DESIGN.md explains the decisions and lists the invariants with their tests.
package raftstore
