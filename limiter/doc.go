// Package limiter is the contract between what decides and what serves. It holds types
// and errors only.
//
// package server, and whatever else asks for decisions, needs a Limiter. package
// persistence implements it for a server that runs alone, package raftstore for a node
// of a cluster. Neither side imports the other.
//
// What only some limiters can do is an interface of its own: Replica, StorageReporter,
// ConsensusReporter, Archiver. A caller asks for it with a type assertion.
//
// The package leaves operations and decisions to package engine, and the text that a
// client reads to package server.
package limiter
