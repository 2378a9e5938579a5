// Package raftstore implements a limiter that several nodes replicate with Raft: the table of package engine behind a
// replicated log.
//
// A Node is one Raft group on a host, and only connects its parts. It makes them (parts.go) when the log and the
// transport are open. Each part has a constructor that takes values and small interfaces. Every group has its own
// directory, identity, membership and peers (host.Group).
//
// A Host (internal/host) is what a process has once for all groups, also for a single one: the inter-node port, the
// log, the window in which groups propose, the loop of checks and the exchange of status. Package router opens it and
// gives it to each Node (Options.Host). A node bootstraps or joins the cluster of its group at the addresses of --join.
// It waits while the hosts at these addresses have not opened the group.
//
// A decision takes the following path. Callers append their operations to the open batch (internal/queue). When the
// window lets it go, or the operations fill an entry, the pump (internal/pipeline) takes the batch. The leader stamps
// it with limiter time and proposes it as one entry of the Raft log, and a follower sends it to the leader instead.
// Every node applies committed entries to its own table in the same order (internal/fsm). The node that proposed an
// entry then finds the answers and wakes its callers.
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
