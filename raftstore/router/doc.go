// Package router implements the Limiter in front of the Raft groups of one node.
//
// Each group owns a range of hash slots. The router sends an operation to the group that owns the slot of its key, and
// a pipeline to several groups at once. Operations on one key keep their order, because a key has one group and the
// router calls a group once for a run of operations. Groups fail one by one. So an operation that its group could not
// decide gets a status (limiter.Outcome), and the other operations of the pipeline are answered.
//
// Every group must know each change of a policy or of a block everywhere. Such an operation goes to one group first,
// whose answer counts, and then to all others. The first group of the cluster decides about policies. The node that
// leads the first group compares the policies of all groups with those of the first group, and repairs the differences
// that a failure left behind.
//
// A node joins the first group first and leaves it last. A node that the first group has removed stays in no other
// group, because the leaders of the other groups remove it.
//
// The router replicates nothing itself: the groups do.
package router
