package machine

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"
)

// ErrProcStat: /proc/<pid>/stat is not what it should be.
var ErrProcStat = errors.New("unexpected process statistics")

const (
	// tick is the unit of times in /proc: USER_HZ, 100 a second on every Linux.
	tick = 10 * time.Millisecond
	// firstTime and lastTime are the positions of utime and cstime in
	// /proc/<pid>/stat, counted from the field behind the name (proc(5) fields 14 to
	// 17): user and system time of all threads, then those of children waited for.
	firstTime, lastTime = 11, 14
)

// CPUTime is the CPU time processes have used so far, children included, all
// together.
func CPUTime(pids []int) (total time.Duration, err error) {
	each, err := CPUTimes(pids)
	for _, used := range each {
		total += used
	}
	return total, err
}

// CPUTimes is the CPU time each process has used so far, children included.
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

// parseStat reads the times of one /proc/<pid>/stat. The name may hold blanks and
// parentheses, so counting begins after the last of them.
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
