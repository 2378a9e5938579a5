// Package consensus wraps the Raft library for the other packages of a group. It adds queries, a wait for answers that
// ends when the library ends, and the outcome of a configuration change. It promotes all other methods of the library
// unchanged.
package consensus
