// Package remote connects a command to a running server. It dials, logs in, and follows a cluster to its leader. Its
// errors say what to do next.
package remote
