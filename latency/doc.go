// Package latency counts durations in a histogram. It has a fixed number of counters, no lock and
// no allocation, so a measurement does not slow the hot path.
//
// Each power of two from 1 µs on is divided into four buckets of equal width. So a bucket's upper
// bound is at most a quarter above its lower bound. A quantile that is read as the upper bound of
// its bucket is never too small. Between 1 µs and a minute it is at most a quarter too large.
package latency
