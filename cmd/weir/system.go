package main

import (
	"errors"
	"runtime"
)

var errSystem = errors.New("weir serve and weir restore do not run on Windows, which cannot sync a directory: a " +
	"crash could lose acknowledged decisions. Run the server on Linux or macOS, in WSL or in a container; " +
	"weir's other commands reach it from here")

// checkSystem refuses to keep state on a system that cannot keep weir's guarantees.
func checkSystem() error { return checkSystemNamed(runtime.GOOS) }

func checkSystemNamed(goos string) error {
	if goos == "windows" {
		return errSystem
	}
	return nil
}
