// Package pipeline takes the decisions of all callers through the log.
//
// Callers append their operations to the open batch (package queue). The pump takes a batch, stamps it with limiter
// time and proposes it as one entry (propose.go). On a follower it sends the batch to the leader instead
// (forward.go). When the FSM has applied an entry, the node that proposed it finds the answers and wakes its callers.
//
// Denials change nothing and need no log entry (deny.go). The leader answers them from applied state, once a majority
// that was asked after the request arrived has confirmed its term (package quorum).
//
// Memory admission, the admission control of a replica (admission.go, evict.go): the leader proposes evictions when
// memory is short. If nothing is left to evict, it denies operations that would take memory.
package pipeline
