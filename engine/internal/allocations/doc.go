// Package allocations keeps the allocations of a limiter with many holds, in the order in which their units were taken.
//
// The list finds, adds, changes and removes an allocation in O(log n), and finds the one that ends first. A release
// moves the marks of all later allocations, so the list stores the distance of each mark to the mark before it (a gap).
// Blocks of sixteen allocations are stored one by one, so a change rewrites one or two of them.
//
// Package store decides which units are given back, and when. A limiter with few holds has no list: see store.
package allocations
