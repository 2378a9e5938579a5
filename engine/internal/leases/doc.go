// Package leases keeps the leases of one key in a chain of blocks in an arena: who holds
// how many units until when.
//
// A set finds a lease by its id, sweeps those that have expired, and says when enough of
// them will have expired to free some units. Package engine decides who may take one.
package leases
