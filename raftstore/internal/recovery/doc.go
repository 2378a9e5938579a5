// Package recovery brings the directory of a node into the state that the Raft library starts from: it
// refuses a member that has lost its log, drops a log that the newest image has compacted, and makes
// the survivors of a lost majority a new cluster if the operator asks for it (recover.json).
package recovery
