package machine

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"
)

// ErrProcStat reports an unexpected format of /proc/<pid>/stat.
var ErrProcStat = errors.New("unexpected process statistics")

const (
	// tick is the unit of times in /proc: USER_HZ, 100 a second on every Linux.
	tick = 10 * time.Millisecond
	// firstTime and lastTime are the positions of utime and cstime in /proc/<pid>/stat, counted from the field after
	// the name (proc(5) fields 14 to 17): user and system time of all threads, then of children that were waited for.
	firstTime, lastTime = 11, 14
)

// CPUTime returns the sum of the CPU time that processes have used so far, children included.
func CPUTime(pids []int) (total time.Duration, err error) {
	each, err := CPUTimes(pids)
	for _, used := range each {
		total += used
	}
	return total, err
}

// CPUTimes returns the CPU time that each process has used so far, children included.
func CPUTimes(pids []int) ([]time.Duration, error) {
	var each []time.Duration
	for _, pid := range pids {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return nil, fmt.Errorf("server CPU is read from Linux's /proc: %w", err)
		}
		used, err := parseStat(stat)
		if err != nil {
			return nil, err
		}
		each = append(each, used)
	}
	return each, nil
}

// parseStat reads the times of one /proc/<pid>/stat. The name may contain blanks and parentheses, so fields count from
// the last parenthesis.
func parseStat(stat []byte) (time.Duration, error) {
	end := bytes.LastIndexByte(stat, ')')
	fields := bytes.Fields(stat[end+1:])
	if end < 0 || len(fields) <= lastTime {
		return 0, fmt.Errorf("%w: %q", ErrProcStat, stat)
	}
	ticks := int64(0)
	for _, field := range fields[firstTime : lastTime+1] {
		n, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%w: %w", ErrProcStat, err)
		}
		ticks += n
	}
	return time.Duration(ticks) * tick, nil
}
