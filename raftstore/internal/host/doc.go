// Package host holds what a process has once for all of its Raft groups, and what a group has of its own beside them.
//
// A Host is the former: the hub of the inter-node port, the shared log, the window, the loop of checks, the memory
// budget, the permit for snapshots and the exchange of status. One owner opens a Host, and closes it after the groups.
//
// A Group is the latter: a data directory with its identity, a port, the peers and a lifetime. No struct embeds one.
// The parts of a group take from it what they need, as values and small interfaces.
//
// Peers asks every other member once a second for its status, and a Host asks for all its groups. A Status is a node's
// report about itself, and a Heard is the last report that this node received from another.
package host
