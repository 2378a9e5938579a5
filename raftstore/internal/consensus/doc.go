// Package consensus is the Raft library as the parts of a group see it: the questions that they ask
// of it, the wait for its answers, and the outcome of a change of the configuration. Everything
// else of the library is promoted as it is.
package consensus
