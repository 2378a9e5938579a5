// Package divergence finds a node whose results differ from the majority's. Every entry carries a hash of its
// proposer's history. A node with another hash asks all voters, and stops if a majority contradicts it.
package divergence
