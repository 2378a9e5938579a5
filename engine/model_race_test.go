//go:build race

package engine_test

// raceFactor divides the work of the long tests, because the race detector makes every operation about ten times
// slower.
const raceFactor = 20
