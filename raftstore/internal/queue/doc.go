// Package queue gathers the operations of all callers into batches until the pipeline takes them.
//
// Each batch becomes one entry of the log. A small batch waits while another one is in flight and
// coalesces with what comes, because an entry costs as much as hundreds of operations. At most
// four batches are in flight at once. A caller finds its answers in the batch once it is complete.
package queue
