//go:build !unix

package main

// mostHandles is how many handles Windows lets a process have.
const mostHandles = 1 << 24

// setUmask does nothing: there is no umask, and checkSystem refuses the commands that keep state.
func setUmask(int) {}

func fileLimit() (uint64, error) { return mostHandles, nil }
