// Package ledger judges what clients of policies and holds saw: checks that take from
// several policies and keys at once, holds that are settled, cancelled or repeated, and
// policies that change meanwhile.
//
// The limits of a history never refill, so that what is left is a matter of counting.
// [Linearizable] looks for an order of the operations in which one careful bookkeeper,
// who does one thing at a time, would have given the same replies: a check of which a
// part was taken, a unit of a hold that was lost or given back twice, a decision under
// half a change of a policy have none. [Explained] asks less of long histories: what is
// used in the end is what was acknowledged, and of what is unknown each whole or not at
// all. [OverHeld] looks at every instant between.
//
// It knows nothing of nodes, connections and faults: the harnesses of packages chaos and
// sim carry out what a [Traffic] draws, and write the [Trail].
package ledger
