// Package images stores the snapshots of the Raft library as images of package persistence.
//
// An image that cannot be read is an error and never skipped, because the log before it is gone. A late image of a
// leader is refused, because this node has all of its entries.
package images
