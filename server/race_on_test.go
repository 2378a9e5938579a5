//go:build race

package server

// raceDetector reports whether the race detector is on. It drops pooled buffers at random, so that allocation counts
// are not exact.
const raceDetector = true
