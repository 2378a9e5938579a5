//go:build !linux

package bench

import "time"

func sharpenSleep() {}

func sleep(d time.Duration) { time.Sleep(d) }
