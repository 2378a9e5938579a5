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
	// leastMemory is the smallest useful bound. Below it, the minimum pages of the shards leave no memory for keys.
	leastMemory = 16 << 20
	// autoPercent of the memory is for limiters. The rest is for connections, for saving and for the system. Without a
	// bound, the kernel would kill the process after a flood of invented keys, and all limiters would be lost.
	autoPercent = 75
	// collectorPercent of the memory is for limiters and the heap. Go's collector has a memory limit for the rest of
	// it (GOMEMLIMIT).
	collectorPercent = 90
)

// resolve returns the bound in bytes on a machine with this much memory. 0 means no bound.
func (m memoryBound) resolve(machine int64) int64 {
	if m.auto {
		return machine / 100 * autoPercent
	}
	return int64(m.bytes)
}

// machineMemory returns the bytes of memory that this process may use: the minimum of the machine's memory and the
// limits of its control groups. It returns 0 if unknown. root is the root of the file system.
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

// cgroupFiles returns the files that may bound the memory: those of the process's control group and its parents, of
// either version.
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
