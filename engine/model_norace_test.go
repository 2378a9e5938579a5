//go:build !race

package engine_test

// raceFactor divides the work of the long tests; see the race build.
const raceFactor = 1
