// Package info formats the state of a server as Redis does: the sections of INFO, and the cluster for cluster clients
// and replication tools. The leader is the primary and owns every slot. Every other node is its replica. With several
// Raft groups, the leader of each group is the primary of the group's slots. While no leader is known, all nodes are
// replicas whose link is down.
//
// Every field has the name and the format that Redis gives it, so that exporters and clients need no change.
//
// Package service counts. Package commands implements the commands.
package info
