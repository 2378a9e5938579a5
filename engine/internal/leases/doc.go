// Package leases keeps the leases of one key in a chain of blocks in an arena. A lease has a
// holder's id, a number of units and an expiry.
//
// A set finds a lease by its id, removes expired leases, and computes when enough leases will have
// expired to free a number of units. Package engine decides whether a lease may be taken.
package leases
