package machine

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// Usage is the sum of the resources that processes have used so far.
type Usage struct {
	CPU       time.Duration // children included
	DiskBytes int64         // sent to the disk, less the bytes that were deleted before
}

// UsageOf reads the resources that processes have used.
func UsageOf(pids []int) (u Usage, err error) {
	if u.CPU, err = CPUTime(pids); err != nil {
		return Usage{}, err
	}
	for _, pid := range pids {
		io, err := numbersOf(fmt.Sprintf("/proc/%d/io", pid))
		if err != nil {
			return Usage{}, err
		}
		u.DiskBytes += io["write_bytes"] - io["cancelled_write_bytes"]
	}
	return u, nil
}

// ResidentBytes returns the memory of processes in RAM: the current (VmRSS) or the maximum (VmHWM) sum.
func ResidentBytes(pids []int, which string) (total int64, err error) {
	const kib = 1024 // the unit that Linux calls kB
	for _, pid := range pids {
		status, err := numbersOf(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			return 0, err
		}
		total += status[which] * kib
	}
	return total, nil
}

// numbersOf reads the numbers of a file with lines like "name: number unit".
func numbersOf(file string) (map[string]int64, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("the resource use of a server is read from Linux's /proc: %w", err)
	}
	numbers := make(map[string]int64)
	for line := range bytes.Lines(text) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		if words := bytes.Fields(value); len(words) > 0 {
			if n, err := strconv.ParseInt(string(words[0]), 10, 64); err == nil {
				numbers[string(name)] = n
			}
		}
	}
	return numbers, nil
}
