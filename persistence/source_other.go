//go:build !linux

package persistence

import "time"

var processStart = time.Now()

// MonotonicNs uses the monotonic clock of the Go runtime.
func (systemSource) MonotonicNs() int64 { return int64(time.Since(processStart)) }
