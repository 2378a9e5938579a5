package service

import (
	"fmt"
	"os"
	"runtime/metrics"
)

// ProcessMemory returns the bytes of live objects, as the Go runtime counts them, and the resident set of the process.
// If the system does not report the resident set, it returns the memory that the runtime holds.
func ProcessMemory() (used, resident uint64) {
	sample := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(sample)
	used = sample[0].Value.Uint64()
	if pages, ok := residentPages(); ok {
		return used, pages * uint64(os.Getpagesize())
	}
	return used, sample[1].Value.Uint64() - sample[2].Value.Uint64()
}

// residentPages reads the second field of /proc/self/statm on Linux.
func residentPages() (pages uint64, ok bool) {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, false
	}
	_, err = fmt.Sscanf(string(b), "%d %d", new(uint64), &pages)
	return pages, err == nil
}
