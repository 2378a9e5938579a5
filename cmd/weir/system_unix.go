//go:build unix

package main

import "syscall"

// setUmask sets the permissions that no new file gets.
func setUmask(bits int) { syscall.Umask(bits) }

// fileLimit returns the limit on file descriptors. Go has raised the soft limit to the hard one.
func fileLimit() (uint64, error) {
	var files syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files)
	return uint64(files.Cur), err
}
