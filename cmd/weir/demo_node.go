package main

import (
	"io"
	"os"
	"syscall"
)

// demoNodeCmd is weir serve as a child of weir demo. It stops when its standard input ends, which happens whenever the
// parent ends.
type demoNodeCmd struct {
	serveCmd `embed:""`
}

func (d *demoNodeCmd) Run() error {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		if self, err := os.FindProcess(os.Getpid()); err != nil || self.Signal(syscall.SIGTERM) != nil {
			os.Exit(1) // this system has no signals
		}
	}()
	return d.serveCmd.Run()
}
