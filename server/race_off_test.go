//go:build !race

package server

// raceDetector drops pooled buffers at random, which allocation counts would see.
const raceDetector = false
