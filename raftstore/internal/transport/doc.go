// Package transport guards the network transport of the Raft library against defects of the library:
// heartbeats that overtake the main loop, heartbeats of a leader whose disk hangs, and images that
// arrive late. Each type says which defect it is there for.
package transport
