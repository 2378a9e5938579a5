// Package logging forwards the log lines of the Raft library, from warnings upward. It lowers lines that the node
// expects to the level debug, for example after another node was stopped or while a cluster starts.
package logging
