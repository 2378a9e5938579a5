package service

import (
	"fmt"
	"os"
	"runtime/metrics"

	"github.com/weir-project/weir/internal/offheap"
)

// ProcessMemory returns the bytes of live objects, as the Go runtime counts them, with the limiters outside its heap,
// and the resident set of the process. If the system does not report the resident set, it returns the memory that the
// runtime holds, with the limiters.
func ProcessMemory() (used, resident uint64) {
	sample := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(sample)
	outside := uint64(offheap.InUse())
	used = sample[0].Value.Uint64() + outside
	if pages, ok := residentPages(); ok {
		return used, pages * uint64(os.Getpagesize())
	}
	return used, sample[1].Value.Uint64() - sample[2].Value.Uint64() + outside
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
