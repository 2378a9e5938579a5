package bench

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// usage is what processes have used so far, all together.
type usage struct {
	cpu       time.Duration // children included
	diskBytes int64         // sent to the disk, less what was taken back before it got there
}

func usageOf(pids []int) (u usage, err error) {
	if u.cpu, err = cpuTime(pids); err != nil {
		return usage{}, err
	}
	for _, pid := range pids {
		io, err := numbersOf(fmt.Sprintf("/proc/%d/io", pid))
		if err != nil {
			return usage{}, err
		}
		u.diskBytes += io["write_bytes"] - io["cancelled_write_bytes"]
	}
	return u, nil
}

// residentBytes is the memory that processes have in RAM (VmRSS) or have had at most
// (VmHWM), all together.
func residentBytes(pids []int, which string) (total int64, err error) {
	const kib = 1024 // what Linux calls kB
	for _, pid := range pids {
		status, err := numbersOf(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			return 0, err
		}
		total += status[which] * kib
	}
	return total, nil
}

// numbersOf reads the numbers of a file of lines like "name: number unit".
func numbersOf(file string) (map[string]int64, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("what a server uses is read from Linux's /proc: %w", err)
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
