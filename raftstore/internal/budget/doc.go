// Package budget divides the memory bound of a host among the tables of its groups.
//
// Half of the bound is reserved in equal parts, and nothing that other groups do takes a byte of a group's part. The
// other half is a pool, which the groups share by use. The division of the pool is max-min fair: see
// https://en.wikipedia.org/wiki/Max-min_fairness. While it lasts, any group may take from it. When it is used up, the
// groups that take the most evict keys, until none takes more than the others that also need more. So a group within an
// equal part of the whole bound evicts keys only if another group should evict some and cannot.
package budget
