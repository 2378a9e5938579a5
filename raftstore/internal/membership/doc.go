// Package membership manages this node's membership in its cluster.
//
// The node joins or bootstraps a cluster, and tells the leader when its own address has changed. The leader adds
// nodes without a vote, promotes them when they have caught up, and removes them.
//
// The package does not replicate the configuration: it proposes each change through the Raft library.
package membership
