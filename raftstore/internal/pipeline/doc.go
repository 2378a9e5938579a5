// Package pipeline takes the decisions of all callers through the log.
//
// Callers append their operations to the open batch (package queue). The pump takes a batch, stamps
// it once with limiter time and proposes it as one entry (propose.go). On a follower it sends the
// batch to the leader instead (forward.go). The node that proposed an entry finds the answers when
// the FSM has applied it, and wakes its callers.
//
// Denials change nothing and need no log (deny.go): the leader answers them from the state it has
// applied, once a majority, asked after the request arrived, confirmed its term (package quorum).
//
// Memory admission (admission.go, evict.go): the leader proposes evictions when memory is short,
// and denies what would take memory when there is nothing to evict.
package pipeline
