// Package limiter defines the contract between the components that decide and the components that serve. It contains
// types and errors only.
//
// Package server and every other caller need a Limiter. Package persistence implements it for a server that runs alone,
// and package raftstore for a node of a cluster. Neither side imports the other.
//
// Optional abilities are separate interfaces: Replica, StorageReporter, ConsensusReporter, Archiver. A
// caller checks for them with a type assertion.
//
// Package engine defines operations and decisions, and implements the limiter algorithms. Package server/service
// defines the error texts that clients read.
package limiter
