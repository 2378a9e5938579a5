// Package transport wraps the network transport of the Raft library to avoid three defects. Heartbeats can overtake
// the main loop, a leader with a hung disk still sends heartbeats, and images can arrive late. The comment of each
// type names the defect that the type avoids. In a cluster with several groups, Shared carries the messages of all
// groups of two hosts over one connection. Connections between nodes and their handshake are in package peer.
package transport
