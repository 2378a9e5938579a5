// Package recovery prepares the directory of a node for the start of the Raft library.
//
// It refuses a member that has lost its log, and drops a log that the newest image has compacted. If the operator
// asks for it (recover.json), it makes the survivors of a lost majority a new cluster.
//
// An interrupted recovery can be repeated. The operator must be certain that the majority is lost for good, because
// the package cannot check it.
package recovery
