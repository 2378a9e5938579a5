// Package host holds the parts that belong to a node and not to its Raft group. They are the inter-node port and the
// connections to other nodes, the node's identity, disk, clocks and timers, and its memory bound. The parts of a group
// embed a Host. A host has one group. A process with several groups has a host for each of them. These hosts share the
// listener of the inter-node port (Options.Hub), the loop of checks and the exchange of status (Options.Process).
//
// Peers asks every other member once a second for its status, and a Process asks for all its groups. A Status is a
// node's report about itself, and a Heard is the last report that this node received from another.
package host
