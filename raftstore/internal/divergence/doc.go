// Package divergence finds the node that computes other results than a majority. Every entry carries
// a hash of the history of its proposer. A node that finds another hash asks all voters, and stops
// if a majority contradicts it.
package divergence
