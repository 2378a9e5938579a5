// Package membership manages this node's membership in its cluster.
//
// The node joins or bootstraps a cluster, and tells the leader when its own address has changed. The leader adds
// nodes without a vote, promotes them when they have caught up, and removes them.
//
// The first of several groups decides which nodes belong to the cluster. The leader of any other group takes in only
// nodes that the first group has, and removes members that the first group has removed.
//
// The package does not replicate the configuration: it proposes each change through the Raft library.
package membership
