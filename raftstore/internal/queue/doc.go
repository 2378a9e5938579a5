// Package queue collects the operations of all callers into batches until the pipeline takes them.
//
// Each batch becomes one log entry. A small batch waits while another is in flight and coalesces with the calls that
// arrive (group commit), because an entry costs as much as hundreds of operations. At most four batches are in flight.
// A caller finds its answers in the batch when the batch is complete.
//
// The queue does not propose entries and does not know the leader: package pipeline proposes or forwards its batches.
package queue
