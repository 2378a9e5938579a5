package main

import (
	"io"
	"os"
	"syscall"
)

// demoNodeCmd is weir serve as a child of weir demo: it stops when its standard input ends, as
// it does when the parent ends, however that happens.
type demoNodeCmd struct {
	serveCmd `embed:""`
}

func (d *demoNodeCmd) Run() error {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		if self, err := os.FindProcess(os.Getpid()); err != nil || self.Signal(syscall.SIGTERM) != nil {
			os.Exit(1) // a system without signals
		}
	}()
	return d.serveCmd.Run()
}
