//go:build !linux

package persistence

import "time"

var processStart = time.Now()

// monotonicNs uses the monotonic clock of the Go runtime.
func monotonicNs() int64 { return int64(time.Since(processStart)) }
