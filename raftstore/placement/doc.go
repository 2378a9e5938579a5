// Package placement decides on which nodes of a cluster the replicas of its Raft groups are.
//
// Found places them when a cluster is founded, Plan lists moves for a cluster that changes, and Leaders says which
// replica of each group should lead. All are pure: the same arguments give the same result on every node. These rules
// hold in this order:
//
//  1. The replicas of a group are on different nodes.
//  2. They are in different zones, or in as many zones as there are: no group has two replicas more in one zone than
//     in another, unless all nodes of that have one.
//  3. The nodes have the same number of replicas, or one more, as far as rule 2 allows it. In a cluster of unequal
//     zones the nodes of a small zone have more than others, because the loss of a zone must not end a group. Within a
//     zone the numbers differ by at most one.
package placement
