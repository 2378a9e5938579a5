// Package latency counts durations where they are measured: a fixed number of
// counters, no lock and no allocation, so that the path that is measured does not
// feel it.
//
// Bounds grow by about a quarter of a power of two, so a quantile read off the
// counts is at most a fifth too large, and never too small.
package latency
