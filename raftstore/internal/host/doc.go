// Package host holds what belongs to the process and not to a group: the inter-node port and the
// other nodes behind it, the identity of the node, its disk, its clocks and timers, and the bound of
// its memory. The parts of a group embed a Host. Today a host has one group.
//
// Peers polls every other member once a second. What a member says of itself is a Status; what this
// node last heard is a Heard.
package host
