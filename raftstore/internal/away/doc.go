// Package away reaches the Raft groups of a cluster of which a node has no replica.
//
// A Group stands for such a group. Its operations go to a node that has a replica, the leader if it is known. The
// nodes that lead groups report them in the exchange of status, and Learn takes the reports. A read is a question to a
// node that has a replica. That node makes it linearizable, so the answer is never stale. Answer is the other side.
package away
