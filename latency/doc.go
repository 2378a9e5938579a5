// Package latency counts durations in a histogram. It has a fixed number of counters, no lock and
// no allocation, so a measurement does not slow the hot path.
//
// Bucket bounds grow by about a quarter of a power of two. A quantile read off the counts is at
// most a fifth too large, and never too small.
package latency
