// Package images lets the Raft library find its snapshots in the images of package persistence.
//
// An image that cannot be read is an error, never passed over: the log before it is gone. An image
// of a leader that arrives late is refused, because this node has all of its entries.
package images
