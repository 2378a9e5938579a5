// Package identity says which node a data directory belongs to.
//
// The identity file is written before the node speaks to anyone, and replaced in one step. It
// holds what the node must not forget: its id, whether it was taken in, whether it was a member,
// and whether it must not start again. Claim refuses a directory that is damaged or another
// node's. A Keeper holds the identity of a running node.
//
// The package also has the rules for ids: a node that lost its disk comes back as another
// incarnation, because it may have forgotten its votes.
package identity
