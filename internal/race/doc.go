// Package race tells a test whether the race detector is on, and skips a test then. The detector makes operations about
// ten times slower, and drops pooled buffers at random, so that allocation counts are not exact.
package race
