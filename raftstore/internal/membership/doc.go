// Package membership is this node as a member of its cluster. It joins a cluster or founds one, tells
// the leader when its address has changed, and as the leader takes nodes in, gives them votes when
// they have caught up, and removes them.
package membership
