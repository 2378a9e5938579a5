package machine

import (
	"fmt"
	"io/fs"
	"runtime"
	"strings"
)

// Machine describes the machine of a run. Unknown fields stay empty.
type Machine struct {
	CPU         string  `json:"cpu"`
	Cores       int     `json:"cores"`
	OS          string  `json:"os"`
	Kernel      string  `json:"kernel"`
	Arch        string  `json:"arch"`
	LoadAverage float64 `json:"load_average_1m"` // before the run
}

// This reads the description of a Linux machine below root, the root of its file system.
func This(root fs.FS) Machine {
	m := Machine{
		CPU:    field(root, "proc/cpuinfo", "model name", ":"),
		Cores:  runtime.NumCPU(),
		OS:     strings.Trim(field(root, "etc/os-release", "PRETTY_NAME", "="), `"`),
		Kernel: strings.TrimSpace(text(root, "proc/sys/kernel/osrelease")),
		Arch:   runtime.GOARCH,
	}
	_, _ = fmt.Sscan(text(root, "proc/loadavg"), &m.LoadAverage) // 0 when unknown
	return m
}

func (m Machine) String() string {
	return fmt.Sprintf("%d x %s (%s), %s, Linux %s", m.Cores, m.CPU, m.Arch, m.OS, m.Kernel)
}

// field returns the value of the first line with this name in a file.
func field(root fs.FS, file, name, separator string) string {
	for line := range strings.Lines(text(root, file)) {
		if key, value, ok := strings.Cut(line, separator); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func text(root fs.FS, file string) string {
	b, _ := fs.ReadFile(root, file)
	return string(b)
}
