package sim

import (
	"errors"
	"fmt"
)

// logs are the replicated logs of a process, one for each group. They are on one disk, so they hang together.
type logs []*faultyLog

func openLogs(groups int, d *disk, noSync bool, dead <-chan struct{}, broke func()) (all logs, err error) {
	for i := range groups {
		dir := logDir
		if i > 0 {
			dir = fmt.Sprint(logDir, i)
		}
		l, err := openLog(dir, d, noSync, dead, broke)
		if err != nil {
			return nil, errors.Join(err, all.Close())
		}
		all = append(all, l)
	}
	return all, nil
}

func (all logs) hang() {
	for _, l := range all {
		l.hang()
	}
}

func (all logs) release(forever bool) {
	for _, l := range all {
		l.release(forever)
	}
}

func (all logs) hasHung() bool {
	for _, l := range all {
		if l.hasHung() {
			return true
		}
	}
	return false
}

// Close closes all logs.
func (all logs) Close() (err error) {
	for _, l := range all {
		err = errors.Join(err, l.Close())
	}
	return err
}
