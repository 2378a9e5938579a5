package main

import (
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/weir-project/weir/internal/cli/cmdline"
)

// memoryBound is --max-memory: a size, 0 for no bound, or auto.
type memoryBound struct {
	auto  bool
	bytes cmdline.ByteSize
}

// UnmarshalText reads the bound.
func (m *memoryBound) UnmarshalText(text []byte) error {
	if string(text) == "auto" {
		*m = memoryBound{auto: true}
		return nil
	}
	*m = memoryBound{}
	if err := m.bytes.UnmarshalText(text); err != nil {
		return fmt.Errorf("%w, or auto, or 0 for no bound", err)
	}
	if m.bytes != 0 && m.bytes < leastMemory {
		return fmt.Errorf("must be at least 16mb, or auto, or 0 for no bound, not %q", text)
	}
	return nil
}

const (
	// leastMemory is the smallest bound that makes sense: below it, the pages that
	// each part of the table takes at least leave no room for keys.
	leastMemory = 16 << 20
	// autoPercent of the memory is for limiters: the rest is for connections, for
	// saving and for the system. Without a bound a flood of invented keys would
	// end with the kernel killing the process, and with it every real limiter.
	autoPercent = 75
	// collectorPercent of the memory is where Go's collector begins to work harder:
	// by default it would let garbage grow to as much as is in use.
	collectorPercent = 90
)

// resolve returns the bound in bytes, 0 for none, on a machine with so much memory.
func (m memoryBound) resolve(machine int64) int64 {
	if m.auto {
		return machine / 100 * autoPercent
	}
	return int64(m.bytes)
}

// machineMemory returns the bytes of memory this process may use, the smallest of
// what the machine has and what its control groups allow; 0 when unknown. root is
// the root of the file system.
func machineMemory(root fs.FS) int64 {
	limit := int64(0)
	consider := func(n int64) {
		if n > 0 && (limit == 0 || n < limit) {
			limit = n
		}
	}
	consider(memTotal(root))
	for _, file := range cgroupFiles(root) {
		b, _ := fs.ReadFile(root, file)
		n, _ := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64) // "max" is no bound
		consider(n)
	}
	return limit
}

// memTotal reads the machine's memory from Linux's /proc/meminfo.
func memTotal(root fs.FS) int64 {
	b, _ := fs.ReadFile(root, "proc/meminfo")
	for line := range strings.Lines(string(b)) {
		var kb int64
		if _, err := fmt.Sscanf(line, "MemTotal: %d kB", &kb); err == nil {
			return kb << 10
		}
	}
	return 0
}

// cgroupFiles names the files that may bound the memory: those of the group of
// this process and all above it, of either version.
func cgroupFiles(root fs.FS) []string {
	files := []string{"sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"}
	b, _ := fs.ReadFile(root, "proc/self/cgroup")
	for line := range strings.Lines(string(b)) {
		group, ok := strings.CutPrefix(strings.TrimSpace(line), "0::/")
		for ok && group != "." && group != "" {
			files = append(files, path.Join("sys/fs/cgroup", group, "memory.max"))
			group = path.Dir(group)
		}
	}
	return files
}
