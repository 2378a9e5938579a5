// Package host holds the parts that belong to the process and not to a Raft group. They are the inter-node port and
// the connections to other nodes, the node's identity, disk, clocks and timers, and its memory bound. The parts of a
// group embed a Host. A host has one group.
//
// Peers polls every other member once a second. A Status is a node's report about itself, and a Heard is the last
// report that this node received from another.
package host
