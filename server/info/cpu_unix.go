//go:build unix

package info

import (
	"fmt"
	"syscall"
	"time"
)

func writeCPU(_ *Server, w *writer) {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return
	}
	w.field("used_cpu_sys", fmt.Sprintf("%.6f", time.Duration(usage.Stime.Nano()).Seconds()))
	w.field("used_cpu_user", fmt.Sprintf("%.6f", time.Duration(usage.Utime.Nano()).Seconds()))
}
