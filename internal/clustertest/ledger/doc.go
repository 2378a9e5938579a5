// Package ledger judges the answers that the clients of a cluster saw. It covers counters, checks that take from
// several policies and keys at once, holds that are committed, cancelled or repeated, and policies that change
// meanwhile.
//
// Their limits never refill, so counting gives the remaining units. These functions judge such a history:
//
//   - [Linearizable] looks for an order of the operations in which a sequential model gives the same replies. No such
//     order exists if an acknowledged unit is forgotten, or one is counted that nobody took, if a check was taken in
//     part, if a unit of a hold was lost or given back twice, or if a decision saw half of a policy change. Reads at
//     the leader and at followers are part of the history.
//   - [Staleness] judges the reads that a node answers alone. Such a read counts every unit that was acknowledged
//     before its call, less the age that it reports.
//   - [Explained] asks less and suits long histories. The final use equals the acknowledged operations, plus some of
//     the unknown operations, each counted whole or not at all.
//   - [OverHeld] checks that the units held and used exceed the limit at no instant of the history. It judges leases
//     too.
//   - [Told] compares a log of events with the operations: each threshold that was reached is told once, each hold that
//     was settled has one event, and no event is without an operation.
//
// Limits that refill have judges of their own: [OverAdmittedBucket] and [OverAdmittedWindow] check that no interval has
// more grants than the limit allows. [Replicas] checks that nodes with the same last entry have the same state.
//
// The package knows nothing of processes, connections and faults. The harnesses of packages chaos and sim run the
// operations, of which a [Traffic] draws some, and write the [Trail].
package ledger
