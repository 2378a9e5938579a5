// Package ledger judges the answers that clients of policies and holds saw. It covers checks that take from several
// policies and keys at once, holds that are committed, cancelled or repeated, and policies that change meanwhile.
//
// Their limits never refill, so counting gives the remaining units. Three functions judge such a history:
//
//   - [Linearizable] looks for an order of the operations in which a sequential model gives the same replies. No such
//     order exists if a check was taken in part, if a unit of a hold was lost or given back twice, or if a decision
//     saw half of a policy change.
//   - [Explained] asks less and suits long histories. The final use equals the acknowledged operations, plus some of
//     the unknown operations, each counted whole or not at all.
//   - [OverHeld] checks that the units held and used exceed the limit at no instant of the history.
//
// Limits that refill have judges of their own: [OverAdmittedBucket] and [OverAdmittedWindow] check that no interval has
// more grants than the limit allows.
//
// The package knows nothing of nodes, connections and faults. The harnesses of packages chaos and sim run the
// operations that a [Traffic] draws, and write the [Trail].
package ledger
