// Package identity records which node a data directory belongs to.
//
// The identity file is written before the node contacts any other node, and is replaced atomically. It holds what the
// node must not forget: its id, whether it was invited, whether it was a member, and whether it must not start again.
// Claim refuses a directory that is damaged or belongs to another node. A Keeper holds the identity of a running node.
//
// The package also defines the rules for ids. A node that lost its disk must rejoin as another incarnation, because
// it may have forgotten its votes. Term and vote are not in the identity file: the log stores them (package wallog).
package identity
