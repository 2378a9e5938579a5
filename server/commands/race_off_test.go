//go:build !race

package commands

// raceDetector drops pooled buffers at random, which allocation counts would see.
const raceDetector = false
