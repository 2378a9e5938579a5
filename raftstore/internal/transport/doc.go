// Package transport wraps the network transport of the Raft library to avoid three defects. Heartbeats can overtake
// the main loop, a leader with a hung disk still sends heartbeats, and images can arrive late. The types name the
// defect that they avoid.
package transport
