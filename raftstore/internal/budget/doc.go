// Package budget divides the memory bound of a host among the tables of its groups, by their use.
//
// The division is the max-min fair one: see https://en.wikipedia.org/wiki/Max-min_fairness. While memory is left, any
// group may take it. When none is left, the largest groups give way until no group is larger than the others that also
// want more. So a group that is within an equal part never gives way to another group.
package budget
