package main

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// onHangup calls act at each SIGHUP until the returned function is called.
func onHangup(act func()) (stop func()) {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	var running sync.WaitGroup
	running.Go(func() {
		for range hangup {
			act()
		}
	})
	return func() {
		signal.Stop(hangup)
		close(hangup)
		running.Wait()
	}
}
