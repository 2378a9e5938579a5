// Package logging passes on what the Raft library logs, from warnings upward. A line that the node
// expects, because a node was stopped or a cluster begins, is logged at the level debug.
package logging
