// Package remote reaches a running server for a command: it dials, logs in, follows a cluster to its
// leader, and says what to do where that fails.
package remote
