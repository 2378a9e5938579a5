// Package transport wraps the network transport of the Raft library to avoid four defects. Heartbeats can overtake
// the main loop, a leader with a hung disk still sends heartbeats, images can arrive late, and a candidate that gets an
// image stays a candidate. The comment of each type or function names the defect that it avoids. In a cluster with
// several groups, Shared carries the messages of all groups of two hosts over one connection. Connections between nodes
// and their handshake are in package peer.
package transport
