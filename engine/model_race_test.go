//go:build race

package engine_test

// raceFactor divides the work of the long tests: the race detector makes every
// operation an order of magnitude slower.
const raceFactor = 20
